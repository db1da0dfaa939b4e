"""The data that doctor's checks read, and TLS handshakes with the webhook as an API server makes them."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from gpugate.certs.authorities import COMMON_NAME
from gpugate.certs.pki import common_name, fingerprint, split, validity
from gpugate.webhook.generate.drift import decoded
from gpugate.webhook.generate.entries import RiskGroup
from gpugate.webhook.operate.installation import CertificateSecret, Unread
from gpugate.webhook.report.diagnosis import Problem
from gpugate.webhook.report.located import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.generate.meant import Meant
    from gpugate.webhook.operate.doctor_checks import Right
    from gpugate.webhook.operate.installation import Installation, Object
    from gpugate.webhook.operate.reachability import Probed

_USERS: Final = "--karpenter-user"
# Stands for an empty list.
_NONE: Final = "none"
_GROUPS: Final = {group.value: group for group in RiskGroup}


def completed(meant: Meant, installation: Installation) -> Meant:
    """Fill in what nobody said of the webhook configurations from what the webhook itself is told of them."""
    container = next(_serving(installation), None)
    if container is None:
        return meant
    users = tuple(given(container, _USERS))
    found = replace(
        meant,
        # Without the flag the usual ones are meant.
        karpenter_users=tuple(each for each in users if each != _NONE) if users else None,
        without=tuple(_GROUPS[each] for each in given(container, "--without") if each in _GROUPS),
        only_namespaces=tuple(given(container, "--only-namespace")),
    )
    said = ("karpenter_users", "without", "only_namespaces")
    return replace(found, **{name: getattr(meant, name) for name in said if getattr(meant, name) is not None})


def containers(installation: Installation) -> Iterator[tuple[Object, Object]]:
    """Yield each container of the namespace's Deployments, with the Pod that it is in."""
    deployments = () if isinstance(installation.deployments, Unread) else installation.deployments
    for deployment in deployments:
        pod = deployment["spec"]["template"]["spec"]
        for container in pod.get("containers") or ():
            yield pod, container


def given(container: Object, flag: str) -> Iterator[str]:
    """Yield what a flag of a container is given, each time; last by its variable."""
    words = _words(container)
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        if word.startswith(f"{flag}="):
            yield word.removeprefix(f"{flag}=")
        elif word == flag:
            yield following
    variable = f"GPUGATE_{flag.removeprefix('--').replace('-', '_').upper()}"
    yield from (each["value"] for each in container.get("env") or () if each["name"] == variable and each.get("value"))


def _serving(installation: Installation) -> Iterator[Object]:
    wanted = installation.names.configuration
    for _, container in containers(installation):
        if "serve" in _words(container) and next(given(container, "--webhook-configuration"), wanted) == wanted:
            yield container


def _words(container: Object) -> list[str]:
    return [*(container.get("command") or ()), *(container.get("args") or ())]


_FLAG: Final = "--policy-file"


class MountedPolicy(NamedTuple):
    """A policy file: where it stands, and its content."""

    where: str
    text: str


def mounted_policy(installation: Installation) -> MountedPolicy | None:
    """Return the policy file that a container of the namespace is started with, where its ConfigMap could be read."""
    for pod, container in containers(installation):
        for path in given(container, _FLAG):
            found = _in_config_map(installation, pod, container, PurePosixPath(path))
            if found:
                return found
    return None


def _in_config_map(
    installation: Installation, spec: Object, container: Object, path: PurePosixPath
) -> MountedPolicy | None:
    maps = {each["name"]: each["configMap"] for each in spec.get("volumes") or () if each.get("configMap")}
    for mount in container.get("volumeMounts") or ():
        source = maps.get(mount["name"])
        if source is None or not path.is_relative_to(mount["mountPath"]):
            continue
        name = mount.get("subPath") or str(path.relative_to(mount["mountPath"]))
        key = next((item["key"] for item in source.get("items") or () if item["path"] == name), name)
        data = installation.config_maps.get(source.get("name", ""), {})
        if key in data:
            return MountedPolicy(f"ConfigMap {installation.names.namespace}/{source['name']}, {key}", data[key])
    return None


@dataclass(frozen=True, slots=True)
class Case:
    """An installation, and what it is held against.

    Attributes:
        installation: what the cluster holds.
        ruleset: the rules in force.
        rules_from: where they were read, for people.
        meant: what was chosen where the configurations were generated.
        url: where the webhook is meant to answer; empty where nobody said.
        wants_secret: whether somebody named the certificate Secret, so that there must be one.
        served: API group -> the resources that the cluster serves in it.
        rights: what the ServiceAccount should be allowed to do; None where there is none.
        probed: what became of a probe through the API server, None where none was sent.
        handshakes: what the webhook showed when it was connected to, None where nobody did.
    """

    installation: Installation
    ruleset: Ruleset
    rules_from: str
    meant: Meant
    url: str = ""
    wants_secret: bool = False
    served: Mapping[str, frozenset[str]] | Unread | None = None
    rights: Sequence[Right] | Unread | None = None
    probed: Probed | None = None
    handshakes: Sequence[Handshake] | None = None

    @property
    def secret(self) -> CertificateSecret | None:
        """The certificate Secret, where it was read."""
        found = self.installation.secret
        return found if isinstance(found, CertificateSecret) else None

    @property
    def keeps_authorities(self) -> bool:
        """Whether the webhook is an authority of its own, as far as one can tell."""
        bundles = [decoded(entry) for _, entry in self.installation.entries]
        ours = any(common_name(pem).startswith(COMMON_NAME) for bundle in bundles for pem in split(bundle))
        return ours or self.wants_secret or self.secret is not None


def error(code: str, found: str, where: str, remedy: str) -> Problem:
    """Return something to act on now."""
    return Problem(Severity.ERROR, code, found, where, remedy)


def warning(code: str, found: str, where: str, remedy: str) -> Problem:
    """Return something to act on soon."""
    return Problem(Severity.WARNING, code, found, where, remedy)


def note(code: str, found: str, where: str, remedy: str) -> Problem:
    """Return something to be known."""
    return Problem(Severity.NOTE, code, found, where, remedy)


_DAY: Final = dt.timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Sort:
    """A sort of certificate.

    Attributes:
        word: what it is called.
        last_part: the share of its life, counted from the end, in which it should have been replaced already.
        urgent: the share of its life, counted from the end, in which it is an error if that is less than a day.
        renew: who replaces it.
    """

    word: str
    last_part: float
    urgent: float
    renew: str


# Authorities are replaced when a third of their life is left, servers' certificates a tenth of it earlier or later.
AUTHORITY: Final = Sort(
    "authority",
    1 / 3,
    1.0,
    "gpugate makes new authorities by itself: see why it does not in the log of the replica that leads; "
    "with certificates of your own, make a new one and write its authority into every caBundle first",
)
SERVER: Final = Sort(
    "certificate of the server",
    1 / 5,
    1 / 10,
    "gpugate renews it by itself: see why it does not in the log of this replica; with certificates of your own, put a new "
    "one into the files of --tls-cert and --tls-key",
)


def check_certificates(case: Case) -> Iterator[Problem]:
    """Yield which authorities in a `caBundle` or in the Secret expired or will soon, each once."""
    names, now = case.installation.names, case.installation.now
    holders: dict[bytes, list[str]] = {}
    lasting: set[str] = set()
    for kind, entry in case.installation.entries:
        lasting |= _collect(holders, decoded(entry), f"{kind} {names.configuration}, webhook {entry['name']}")
    if case.secret:
        lasting |= _collect(holders, case.secret.bundle, f"Secret {names.namespace}/{names.secret}")
    for pem, where in holders.items():
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        yield from expiring(pem, f"{where[0]}{more}", now, AUTHORITY, last=fingerprint(pem) in lasting)


def expiring(pem: bytes, where: str, now: dt.datetime, sort: Sort, *, last: bool) -> Iterator[Problem]:
    """Yield whether a certificate is not valid, or will not be for long; `last` where none lasts longer in its place."""
    begin, end = validity(pem)
    left, life = end - now, end - begin
    name = f"the {sort.word} {common_name(pem) or 'without a name'!r}"
    if end <= now:
        yield error("expired", f"{name} expired {_span(-left)} ago ({_date(end)})", where, sort.renew)
    elif begin > now:
        clock = "compare the clocks of this machine, of the nodes and of the API server"
        yield error("not-yet-valid", f"{name} is valid only from {_date(begin)}", where, clock)
    elif left < min(_DAY, life * sort.urgent):
        level = error if last else warning
        yield level("expires-soon", f"{name} expires in {_span(left)} ({_date(end)})", where, sort.renew)
    elif last and left < life * sort.last_part:
        found = f"{name} should have been replaced already: it expires in {_span(left)} ({_date(end)})"
        yield warning("renewal-overdue", found, where, sort.renew)


def _collect(holders: dict[bytes, list[str]], bundle: bytes, where: str) -> set[str]:
    """Note who holds which certificates; returns the fingerprint of the one that lasts longest."""
    found = split(bundle)
    for pem in found:
        holders.setdefault(pem, []).append(where)
    return {fingerprint(max(found, key=lambda pem: validity(pem)[1]))} if found else set()


def _span(span: dt.timedelta) -> str:
    hours = span.total_seconds() / 3600
    if hours >= 48:
        return f"{hours / 24:.0f} days"
    return f"{hours:.0f} hours" if hours >= 2 else f"{hours * 60:.0f} minutes"


def _date(time: dt.datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"


_SECONDS: Final = 3.0
_MOST_ADDRESSES: Final = 8
_PORT: Final = 443


@dataclass(frozen=True, slots=True)
class Target:
    """Somebody to connect to: the name that its certificate must have, host and port, and what is trusted (PEM)."""

    name: str
    host: str
    port: int
    bundle: bytes

    def __str__(self) -> str:
        address = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        return f"https://{address}"


@dataclass(frozen=True, slots=True)
class Handshake:
    """What became of it: the certificate that was shown (PEM), why it is refused, or why nobody was reached."""

    target: Target
    certificate: bytes = b""
    refused: str = ""
    unreached: str = ""


def targets(installation: Installation) -> Sequence[Target]:
    """Return whom the entries lead to: URLs, and the Pods behind the Service; each once with each bundle."""
    found: dict[Target, None] = {}
    for _, entry in installation.entries:
        bundle, client = decoded(entry), entry.get("clientConfig") or {}
        if client.get("url"):
            url = urlsplit(client["url"])
            found[Target(url.hostname or "", url.hostname or "", url.port or _PORT, bundle)] = None
        elif client.get("service"):
            service = client["service"]
            name = f"{service['name']}.{service['namespace']}.svc"
            found |= {Target(name, host, port, bundle): None for host, port in _addresses(installation)}
    return list(found)[:_MOST_ADDRESSES]


def shake(target: Target) -> Handshake:
    """Connect once, and hang up when the certificate was seen; sends nothing beyond TLS."""
    seen = _shown(target, _context(b""))
    if seen.unreached or seen.refused:
        return seen
    if not split(target.bundle):
        return Handshake(target, seen.certificate, "the caBundle holds no certificate to check it against")
    checked = _shown(target, _context(target.bundle))
    return Handshake(target, seen.certificate, checked.refused, checked.unreached)


def check_handshakes(case: Case) -> Iterator[Problem]:
    """Yield which certificate an API server would refuse, and which expires soon."""
    shown: dict[bytes, Target] = {}
    for each in case.handshakes or ():
        if each.certificate:
            shown.setdefault(each.certificate, each.target)
        if each.refused:
            text = f"the API server would refuse the certificate of the webhook: {each.refused}"
            remedy = (
                "name the address with --tls-san of `gpugate serve`; with certificates of your own, make one for it, "
                "signed by an authority in the caBundle"
            )
            yield error("refused", text, f"{each.target}, as {each.target.name}", remedy)
    for pem, target in shown.items():
        yield from expiring(pem, str(target), case.installation.now, SERVER, last=True)


def _addresses(installation: Installation) -> Iterator[tuple[str, int]]:
    slices: Sequence[Object] = () if isinstance(installation.endpoint_slices, Unread) else installation.endpoint_slices
    for found in slices:
        ports = [each["port"] for each in found.get("ports") or () if each.get("port")]
        for endpoint in found.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                yield from ((address, port) for address in endpoint.get("addresses") or () for port in ports[:1])


def _context(bundle: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Go, and so the API server, does not look at the common name either.
    context.hostname_checks_common_name = False
    if bundle:
        context.load_verify_locations(cadata=b"".join(split(bundle)).decode("ascii"))
    else:
        # To see the certificate; nothing is sent to whom it belongs.
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _shown(target: Target, context: ssl.SSLContext) -> Handshake:
    try:
        with (
            socket.create_connection((target.host, target.port), _SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=target.name) as connection,
        ):
            der = connection.getpeercert(binary_form=True) or b""
            return Handshake(target, ssl.DER_cert_to_PEM_cert(der).encode("ascii"))
    except ssl.SSLCertVerificationError as failure:
        return Handshake(target, refused=failure.verify_message)
    except ssl.SSLError as failure:
        return Handshake(target, refused=f"no TLS ({failure.reason or 'unknown'})")
    except OSError as failure:
        return Handshake(target, unreached=(failure.strerror or type(failure).__name__).lower())
