"""Test the names that clients connect to, and those of certificates."""

from __future__ import annotations

import ipaddress

import pytest
from cryptography import x509

from gpugate.certs.pki import build_constraints, covers, parse_address, parse_general_name

# 253 characters (RFC 1035, 2.3.4: 255 octets with the length of each label and of the root).
LONGEST = ".".join(["a" * 63] * 3 + ["a" * 61])


def alternatives(*names: str) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([parse_general_name(name) for name in names])


@pytest.mark.parametrize(
    ("names", "name", "matches"),
    [
        (("gpugate.ns.svc",), "gpugate.ns.svc", True),
        (("gpugate.ns.svc",), "GPUGATE.ns.svc.", True),
        (("Gpugate.NS.svc",), "gpugate.ns.svc", True),
        (("gpugate.ns.svc",), "other.ns.svc", False),
        (("*.ns.svc",), "gpugate.ns.svc", True),
        (("*.svc",), "gpugate.ns.svc", False),
        (("*.ns.svc",), "ns.svc", False),
        (("10.0.0.1",), "10.0.0.1", True),
        (("10.0.0.1",), "10.0.0.2", False),
        (("::1",), "0:0:0:0:0:0:0:1", True),
        (("localhost",), "127.0.0.1", False),
        (("10.0.0.1",), "localhost", False),
    ],
)
def test_names_match_alternative_names(names: tuple[str, ...], name: str, matches: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert covers(alternatives(*names), name) is matches


@pytest.mark.parametrize(
    ("name", "general"),
    [
        ("a" * 63 + ".svc", x509.DNSName("a" * 63 + ".svc")),
        ("*.svc", x509.DNSName("*.svc")),
        ("a." * 126 + "b", x509.DNSName("a." * 126 + "b")),
        (LONGEST, x509.DNSName(LONGEST)),
        ("10.0.0.1", x509.IPAddress(ipaddress.ip_address("10.0.0.1"))),
    ],
)
def test_valid_names_are_parsed(name: str, general: x509.GeneralName) -> None:
    assert parse_general_name(name) == general


@pytest.mark.parametrize(("name", "address"), [("::1", ipaddress.ip_address("::1")), ("localhost", None), ("", None)])
def test_addresses_are_distinguished_from_names(name: str, address: object) -> None:
    assert parse_address(name) == address


def subtree(text: str) -> x509.GeneralName:
    return x509.IPAddress(ipaddress.ip_network(text)) if "/" in text else x509.DNSName(text)


@pytest.mark.parametrize(
    ("names", "permitted", "excluded"),
    [
        (("a.svc", "*.b.svc", "a.svc"), ("a.svc", "b.svc"), ("0.0.0.0/0", "::/0")),
        (("10.0.0.1",), ("invalid", "10.0.0.1/32"), None),
        (("a", "::1", "10.0.0.1", "::1"), ("a", "::1/128", "10.0.0.1/32"), None),
    ],
)
def test_constraints_permit_names_and_exclude_the_other_form(
    names: tuple[str, ...], permitted: tuple[str, ...], excluded: tuple[str, ...] | None
) -> None:
    name_constraints = build_constraints(names)
    assert name_constraints.permitted_subtrees == [subtree(text) for text in permitted]
    assert name_constraints.excluded_subtrees == (None if excluded is None else [subtree(text) for text in excluded])
