"""The names in certificates: which a server may have, and to which an authority is held."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final, TypeAlias

from cryptography import x509

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.x509.general_name import GeneralName

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL: Final = "[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_DNS_NAME: Final = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")
_LONGEST_DNS_NAME: Final = 253
# No server has a name below it (RFC 6761, 6.4); an empty subtree says the same, but not every verifier reads it.
_NO_DNS_NAME: Final = "invalid"
_NO_ADDRESS: Final = ("0.0.0.0/0", "::/0")


def alternative(name: str) -> GeneralName:
    """Read a name as a certificate says it in its alternative names.

    Raises:
        ValueError: it is neither an IP address nor an ASCII DNS name, which may begin with `*.`.
    """
    address = address_of(name)
    if address is not None:
        return x509.IPAddress(address)
    if len(name) > _LONGEST_DNS_NAME or not _DNS_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is neither an IP address nor a DNS name")
    return x509.DNSName(name)


def address_of(name: str) -> Address | None:
    """Return the IP address that a name is, if it is one."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def constraints(names: Sequence[str]) -> x509.NameConstraints:
    """Hold an authority to these names: the DNS names and what is below them, and exactly the addresses.

    A constraint of one form of names says nothing about the other (RFC 5280, 4.2.1.10), so that where there are no
    addresses all of them are excluded, and where there are no DNS names one is permitted that nobody can have.
    """
    addresses = [found for found in map(address_of, names) if found is not None]
    suffixes = [name.removeprefix("*.") for name in names if address_of(name) is None] or [_NO_DNS_NAME]
    permitted: list[GeneralName] = [x509.DNSName(suffix) for suffix in dict.fromkeys(suffixes)]
    permitted += [x509.IPAddress(ipaddress.ip_network(address)) for address in dict.fromkeys(addresses)]
    excluded = None if addresses else [x509.IPAddress(ipaddress.ip_network(network)) for network in _NO_ADDRESS]
    return x509.NameConstraints(permitted, excluded)


def permits(authority: x509.Certificate, names: Sequence[str]) -> bool:
    """Tell whether an authority with constraints as `constraints` makes them, or none, may sign for all these names."""
    try:
        held_to = authority.extensions.get_extension_for_class(x509.NameConstraints).value
    except x509.ExtensionNotFound:
        return True
    trees = held_to.permitted_subtrees or ()
    suffixes = [tree.value.lower() for tree in trees if isinstance(tree, x509.DNSName)]
    networks = [tree.value for tree in trees if isinstance(tree, x509.IPAddress)]

    def one(name: str) -> bool:
        address = address_of(name)
        if address is not None:
            return ipaddress.ip_network(address) in networks
        below = "." + name.lower().removeprefix("*.")
        return any(below.endswith("." + suffix) for suffix in suffixes)

    return all(map(one, names))


def covers(alternatives: x509.SubjectAlternativeName, name: str) -> bool:
    """Tell whether a client that reaches a server by this name takes a certificate with these alternative names.

    A name `*.svc` is for every name with one more label (RFC 9525, 6.3).
    """
    address = address_of(name)
    if address is not None:
        return address in alternatives.get_values_for_type(x509.IPAddress)
    wanted = name.lower().removesuffix(".")
    either = {wanted, "*." + wanted.partition(".")[2]}
    return not either.isdisjoint(each.lower() for each in alternatives.get_values_for_type(x509.DNSName))
