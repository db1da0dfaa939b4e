"""The data for the checks of `gpugate doctor`, and TLS handshakes with the webhook, verified as by an API server."""

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
from gpugate.webhook.cluster.policy_bundle import bundle_reference
from gpugate.webhook.operate.diagnosis import Problem
from gpugate.webhook.operate.installation import CertificateSecret, Unread
from gpugate.webhook.registration.drift import decoded
from gpugate.webhook.registration.entries import RiskGroup
from gpugate.webhook.report.located import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.operate.installation import Installation, Object
    from gpugate.webhook.operate.reachability import Probed
    from gpugate.webhook.registration.meant import Meant

_USERS: Final = "--karpenter-user"
# The value of the flag for an empty list.
_NONE: Final = "none"
_GROUPS: Final = {group.value: group for group in RiskGroup}


def complete_options(meant: Meant, installation: Installation) -> Meant:
    """Complete unset options of the webhook configurations from the arguments of the webhook's container."""
    container = next(_serving_containers(installation), None)
    if container is None:
        return meant
    users = tuple(flag_values(container, _USERS))
    options = replace(
        meant,
        # Without the flag, the default users apply.
        karpenter_users=tuple(user for user in users if user != _NONE) if users else None,
        without=tuple(_GROUPS[user] for user in flag_values(container, "--without") if user in _GROUPS),
        only_namespaces=tuple(flag_values(container, "--only-namespace")),
    )
    fields = ("karpenter_users", "without", "only_namespaces")
    return replace(options, **{name: getattr(meant, name) for name in fields if getattr(meant, name) is not None})


def containers(installation: Installation) -> Iterator[tuple[Object, Object]]:
    """Yield each container of the namespace's Deployments, with its Pod spec."""
    deployments = () if isinstance(installation.deployments, Unread) else installation.deployments
    for deployment in deployments:
        pod = deployment["spec"]["template"]["spec"]
        for container in pod.get("containers") or ():
            yield pod, container


def flag_values(container: Object, flag: str) -> Iterator[str]:
    """Yield each value of a flag in a container's arguments, then the value of its environment variable."""
    words = _words(container)
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        if word.startswith(f"{flag}="):
            yield word.removeprefix(f"{flag}=")
        elif word == flag:
            yield following
    variable = f"GPUGATE_{flag.removeprefix('--').replace('-', '_').upper()}"
    yield from (
        variable_entry["value"]
        for variable_entry in container.get("env") or ()
        if variable_entry["name"] == variable and variable_entry.get("value")
    )


def _serving_containers(installation: Installation) -> Iterator[Object]:
    configuration = installation.names.configuration
    for _, container in containers(installation):
        if (
            "serve" in _words(container)
            and next(flag_values(container, "--webhook-configuration"), configuration) == configuration
        ):
            yield container


def _words(container: Object) -> list[str]:
    return [*(container.get("command") or ()), *(container.get("args") or ())]


_FLAG: Final = "--policy-file"


class MountedPolicy(NamedTuple):
    """A policy file: its location and its content."""

    where: str
    text: str


def loads_own_policies(installation: Installation) -> bool:
    """Return whether a container of the webhook names directories of policies outside the library."""
    flags = ("--policy-path", "--policy-paths")
    return any(
        True for _, container in containers(installation) for flag in flags for _ in flag_values(container, flag)
    )


def mounted_policy(installation: Installation) -> MountedPolicy | None:
    """Return the policy file of a container in the namespace; None if there is none, or its ConfigMap was not read."""
    for pod, container in containers(installation):
        for path in flag_values(container, _FLAG):
            policy = _in_config_map(installation, pod, container, PurePosixPath(path))
            if policy:
                return policy
    return None


def used_bundle(installation: Installation) -> str:
    """Return the reference of the policy bundle that a webhook of the namespace uses; empty if there is none."""
    return next(filter(None, (bundle_reference(pod) for pod, _ in containers(installation))), "")


def _in_config_map(
    installation: Installation, spec: Object, container: Object, path: PurePosixPath
) -> MountedPolicy | None:
    maps = {volume["name"]: volume["configMap"] for volume in spec.get("volumes") or () if volume.get("configMap")}
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
class Right:
    """A permission that a ServiceAccount needs, and whether it has it; without a namespace, in all namespaces."""

    verb: str
    group: str
    resource: str
    name: str = ""
    namespace: str = ""
    allowed: bool = False

    @property
    def object(self) -> str:
        """The resource, with the name and the namespace of the object."""
        plural, slash, subresource = self.resource.partition("/")
        kind = f"{plural}.{self.group}{slash}{subresource}" if self.group else self.resource
        return f"{kind}{f' {self.name}' if self.name else ''}{f' in {self.namespace}' if self.namespace else ''}"


@dataclass(frozen=True, slots=True)
class Case:
    """An installation, and the expected state with which the checks compare it.

    Attributes:
        installation: the objects in the cluster.
        ruleset: the ruleset in force.
        rules_from: the source of the ruleset, for the user.
        meant: the options with which the configurations were generated.
        url: the expected URL of the webhook; empty if unknown.
        wants_secret: whether the user named the certificate Secret, which then must exist.
        knows_own: whether the ruleset has the policies outside the library that the webhook uses.
        served: API group -> the resources that the cluster serves.
        rights: the permissions that the ServiceAccount needs; None without a ServiceAccount.
        probed: the result of a probe through the API server; None if none was sent.
        handshakes: the results of TLS handshakes with the webhook; None if none were made.
    """

    installation: Installation
    ruleset: Ruleset
    rules_from: str
    meant: Meant
    url: str = ""
    wants_secret: bool = False
    knows_own: bool = True
    served: Mapping[str, frozenset[str]] | Unread | None = None
    rights: Sequence[Right] | Unread | None = None
    probed: Probed | None = None
    handshakes: Sequence[Handshake] | None = None

    @property
    def secret(self) -> CertificateSecret | None:
        """The certificate Secret; None if it does not exist or was not read."""
        secret = self.installation.secret
        return secret if isinstance(secret, CertificateSecret) else None

    @property
    def keeps_authorities(self) -> bool:
        """Whether the webhook seems to manage its own authorities."""
        bundles = [decoded(entry) for _, entry in self.installation.entries]
        has_own = any(common_name(pem).startswith(COMMON_NAME) for bundle in bundles for pem in split(bundle))
        return has_own or self.wants_secret or self.secret is not None


def error(code: str, text: str, where: str, remedy: str) -> Problem:
    """Return a problem to solve now."""
    return Problem(Severity.ERROR, code, text, where, remedy)


def warning(code: str, text: str, where: str, remedy: str) -> Problem:
    """Return a problem to solve soon."""
    return Problem(Severity.WARNING, code, text, where, remedy)


def note(code: str, text: str, where: str, remedy: str) -> Problem:
    """Return information that needs no action."""
    return Problem(Severity.NOTE, code, text, where, remedy)


_DAY: Final = dt.timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class CertificateType:
    """A type of certificate.

    Attributes:
        word: its name in messages.
        last_part: the last share of the lifetime, in which the certificate should have been replaced already.
        urgent: the last share of the lifetime, in which the problem is an error if less than a day remains.
        renew: what to do to replace it.
    """

    word: str
    last_part: float
    urgent: float
    renew: str


# Authorities are replaced when a third of their lifetime remains, serving certificates a tenth of it earlier or later.
AUTHORITY: Final = CertificateType(
    "CA",
    1 / 3,
    1.0,
    "gpugate replaces its CAs automatically: see the log of the leader for the reason why it does not; "
    "for certificates of your own, create a new CA and add it to every caBundle first",
)
SERVER: Final = CertificateType(
    "serving certificate",
    1 / 5,
    1 / 10,
    "gpugate renews it automatically: see the log of this replica for the reason why it does not; for a certificate of "
    "your own, replace the files of --tls-cert and --tls-key",
)


def check_certificates(case: Case) -> Iterator[Problem]:
    """Yield the authorities in a `caBundle` or in the Secret that have expired or expire soon, each once."""
    names, now = case.installation.names, case.installation.now
    holders: dict[bytes, list[str]] = {}
    lasting: set[str] = set()
    for kind, entry in case.installation.entries:
        lasting |= _collect(holders, decoded(entry), f"{kind} {names.configuration}, webhook {entry['name']}")
    if case.secret:
        lasting |= _collect(holders, case.secret.bundle, f"Secret {names.namespace}/{names.secret}")
    for pem, where in holders.items():
        suffix = f" and {len(where) - 1} more" if len(where) > 1 else ""
        yield from check_expiry(pem, f"{where[0]}{suffix}", now, AUTHORITY, last=fingerprint(pem) in lasting)


def check_expiry(
    pem: bytes, where: str, now: dt.datetime, certificate_type: CertificateType, *, last: bool
) -> Iterator[Problem]:
    """Yield a problem if a certificate is invalid or expires soon; `last`: no certificate beside it lasts longer."""
    begin, end = validity(pem)
    remaining, life = end - now, end - begin
    name = f"the {certificate_type.word} {common_name(pem) or 'without a name'!r}"
    if end <= now:
        yield error("expired", f"{name} expired {_span(-remaining)} ago ({_date(end)})", where, certificate_type.renew)
    elif begin > now:
        clock = "compare the clocks of this machine, of the nodes and of the API server"
        yield error("not-yet-valid", f"{name} is valid only from {_date(begin)}", where, clock)
    elif remaining < min(_DAY, life * certificate_type.urgent):
        level = error if last else warning
        yield level(
            "expires-soon", f"{name} expires in {_span(remaining)} ({_date(end)})", where, certificate_type.renew
        )
    elif last and remaining < life * certificate_type.last_part:
        text = f"{name} should have been replaced already: it expires in {_span(remaining)} ({_date(end)})"
        yield warning("renewal-overdue", text, where, certificate_type.renew)


def _collect(holders: dict[bytes, list[str]], bundle: bytes, where: str) -> set[str]:
    """Add the certificates of a bundle to `holders`; return the fingerprint of the one that lasts longest."""
    certificates = split(bundle)
    for pem in certificates:
        holders.setdefault(pem, []).append(where)
    return {fingerprint(max(certificates, key=lambda pem: validity(pem)[1]))} if certificates else set()


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
    """An address to connect to: the name to verify, host and port, and the trusted authorities (PEM)."""

    name: str
    host: str
    port: int
    bundle: bytes

    def __str__(self) -> str:
        address = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        return f"https://{address}"


@dataclass(frozen=True, slots=True)
class Handshake:
    """The result of a handshake: the certificate (PEM), why it is refused, or why the address is unreachable."""

    target: Target
    certificate: bytes = b""
    refused: str = ""
    unreached: str = ""


def targets(installation: Installation) -> Sequence[Target]:
    """Return the addresses of the entries: URLs, and the Pods of the Service; each once for each bundle."""
    unique: dict[Target, None] = {}
    for _, entry in installation.entries:
        bundle, client = decoded(entry), entry.get("clientConfig") or {}
        if client.get("url"):
            url = urlsplit(client["url"])
            unique[Target(url.hostname or "", url.hostname or "", url.port or _PORT, bundle)] = None
        elif client.get("service"):
            service = client["service"]
            name = f"{service['name']}.{service['namespace']}.svc"
            unique |= {Target(name, host, port, bundle): None for host, port in _addresses(installation)}
    return list(unique)[:_MOST_ADDRESSES]


def make_handshake(target: Target) -> Handshake:
    """Make a TLS handshake with a target and close the connection, without sending a request."""
    unverified = _connect(target, _context(b""))
    if unverified.unreached or unverified.refused:
        return unverified
    if not split(target.bundle):
        return Handshake(target, unverified.certificate, "the caBundle contains no certificate to verify it with")
    verified = _connect(target, _context(target.bundle))
    return Handshake(target, unverified.certificate, verified.refused, verified.unreached)


def check_handshakes(case: Case) -> Iterator[Problem]:
    """Yield the certificates that an API server would refuse, and those that expire soon."""
    targets_by_certificate: dict[bytes, Target] = {}
    for handshake in case.handshakes or ():
        if handshake.certificate:
            targets_by_certificate.setdefault(handshake.certificate, handshake.target)
        if handshake.refused:
            text = f"the API server would refuse the certificate of the webhook: {handshake.refused}"
            remedy = (
                "add the name with --tls-san of `gpugate serve`; for certificates of your own, create one for the name, "
                "signed by a CA in the caBundle"
            )
            yield error("refused", text, f"{handshake.target}, as {handshake.target.name}", remedy)
    for pem, target in targets_by_certificate.items():
        yield from check_expiry(pem, str(target), case.installation.now, SERVER, last=True)


def _addresses(installation: Installation) -> Iterator[tuple[str, int]]:
    slices: Sequence[Object] = () if isinstance(installation.endpoint_slices, Unread) else installation.endpoint_slices
    for endpoint_slice in slices:
        ports = [port_entry["port"] for port_entry in endpoint_slice.get("ports") or () if port_entry.get("port")]
        for endpoint in endpoint_slice.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                yield from ((address, port) for address in endpoint.get("addresses") or () for port in ports[:1])


def _context(bundle: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Go, and so the API server, ignores the common name too.
    context.hostname_checks_common_name = False
    if bundle:
        context.load_verify_locations(cadata=b"".join(split(bundle)).decode("ascii"))
    else:
        # This connection only reads the certificate, and sends no data to an unverified server.
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _connect(target: Target, context: ssl.SSLContext) -> Handshake:
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
