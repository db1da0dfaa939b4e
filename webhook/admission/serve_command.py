"""`gpugate serve`: run the webhook, with flags that fall back to environment variables."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.policies.sdk import quantity
from gpugate.webhook.cli import options
from gpugate.webhook.cli.identity import add_identity, cluster_of
from gpugate.webhook.cli.options import Parser, UsageError, checked_url, duration
from gpugate.webhook.registration import flags as meant_flags

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from gpugate.certs.authorities import Periods
    from gpugate.webhook.admission.options import Keeping

# Kubernetes mounts this file into every Pod with a ServiceAccount token.
_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_SMALLEST_RECORD: Final = 1 << 20
_LARGEST_RECORD: Final = 1 << 40
_SHORTEST_LEAF: Final = dt.timedelta(seconds=4)


class _Text(NamedTuple):
    flag: str
    metavar: str
    default: str
    text: str


_TEXTS: Final = (
    _Text("--certificate-secret", "NAME", "", "manage the certificates, and store the CAs in this Secret"),
    _Text("--namespace", "NAME", "", "namespace of the webhook (default: that of its Pod)"),
    _Text("--service", "NAME", "gpugate", "Service of the webhook"),
    _Text("--webhook-configuration", "NAME", "gpugate", "name of both webhook configurations"),
    _Text("--url", "URL", "", "URL of the webhook, if API servers do not use the Service: https://HOST:PORT"),
    _Text("--authority-life", "TIME", "90d", "validity of a CA"),
    _Text("--authority-rotation", "TIME", "30d", "time until the next CA signs"),
    _Text("--certificate-life", "TIME", "24h", "validity of the serving certificate"),
    _Text("--propagation", "TIME", "10m", "time between the publication of a CA and its first signature"),
)


def _add_managed_certificates(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("managed certificates (with --certificate-secret)")
    for text in _TEXTS:
        default = _environment(_name(text.flag)) or text.default
        help_text = f"{text.text} (default: {text.default})" if text.default else text.text
        group.add_argument(text.flag, metavar=text.metavar, default=default, help=help_text)
    expected = parser.add_argument_group("expected webhook configurations (to report differences)")
    meant_flags.add(expected, _environment)


def _add_client_certificates(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("client certificates")
    client_ca = _environment("client_ca")
    group.add_argument(
        "--client-ca",
        type=Path,
        metavar="FILE",
        default=Path(client_ca) if client_ca else None,
        help="require a client certificate of these CAs, PEM (mutual TLS)",
    )
    group.add_argument(
        "--client-name",
        action="append",
        metavar="NAME",
        default=_listed(_environment("client_name")),
        help="accepted name in client certificates; repeatable (default: kube-apiserver)",
    )


def keeping(args: argparse.Namespace, names: tuple[str, ...], *, in_cluster: bool) -> Keeping | None:
    """Return how certificates are managed, None if they are not; `names` are further names in them.

    Raises:
        UsageError: there is no cluster, a duration or the URL is invalid, durations contradict each other, or the
            namespace is unknown.
    """
    if not args.certificate_secret:
        return None
    if args.tls_cert is not None:
        raise UsageError("--certificate-secret and --tls-cert exclude each other: remove one of them")
    if not in_cluster:
        raise UsageError("--certificate-secret needs a cluster: run gpugate in a Pod, or set --kubeconfig")
    from gpugate.webhook.admission.options import Keeping  # noqa: PLC0415 -- imports half the server

    return Keeping(
        secret=args.certificate_secret,
        namespace=args.namespace or _own_namespace(),
        service=args.service,
        configuration=args.webhook_configuration,
        url=checked_url(args.url),
        names=names,
        meant=meant_flags.meant(args),
        periods=_periods(args),
    )


def _periods(args: argparse.Namespace) -> Periods:
    from gpugate.certs.authorities import Periods  # noqa: PLC0415 -- imports cryptography

    periods = Periods(
        authority=_duration(args, "--authority-life"),
        rotation=_duration(args, "--authority-rotation"),
        leaf=_duration(args, "--certificate-life"),
        propagation=_duration(args, "--propagation"),
    )
    if periods.leaf < _SHORTEST_LEAF:
        # Certificates have whole seconds as dates, and renewal starts after two thirds of the lifetime.
        raise UsageError(f"--certificate-life must be at least {_SHORTEST_LEAF.seconds}s")
    if periods.rotation < periods.propagation:
        raise UsageError("--authority-rotation must not be shorter than --propagation")
    # A CA is published first, then it signs, and then its last certificate must expire.
    if periods.authority < 2 * periods.rotation + periods.leaf + periods.propagation:
        raise UsageError(
            "--authority-life must be at least twice --authority-rotation, plus --certificate-life and --propagation"
        )
    return periods


def _duration(args: argparse.Namespace, flag: str) -> dt.timedelta:
    text = getattr(args, _name(flag))
    with contextlib.suppress(ValueError):
        # Zero is not a valid lifetime.
        if parsed := duration(text):
            return parsed
    variable = f"GPUGATE_{_name(flag).upper()}"
    where = f"{variable} (or {flag})" if os.environ.get(variable) == text else flag
    raise UsageError(f"{where}: {text!r} is not a duration such as 30d, 24h, 10m or 90s")


def _own_namespace() -> str:
    if namespace := _pod_namespace():
        return namespace
    raise UsageError("--certificate-secret needs --namespace outside a Pod")


def _pod_namespace() -> str:
    """Return the namespace of this Pod; empty outside a Pod."""
    try:
        return _NAMESPACE_FILE.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _listed(text: str | None) -> list[str] | None:
    return (text or "").replace(",", " ").split() or None


def _name(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


class _Number(NamedTuple):
    flag: str
    default: int
    least: int
    most: int
    text: str


_LISTENER: Final = (
    _Number("--port", 8443, 0, 65535, "port for reviews, TLS; 0 selects a free port"),
    _Number("--health-port", 8081, 0, 65535, "port for /healthz, /readyz, /metrics and /shadow, plain HTTP"),
)
_PROCESSES: Final = (
    _Number("--workers", 2, 1, 64, "number of worker processes"),
    _Number("--drain", 10, 0, 600, "seconds during which new connections are accepted after SIGTERM"),
    _Number("--max-connections", 512, 1, 1_000_000, "maximum number of connections per worker"),
    _Number(
        "--max-connections-per-source", 256, 1, 1_000_000, "maximum number of connections per worker and client address"
    ),
)
_NUMBERS: Final = (*_LISTENER, *_PROCESSES)


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    if (args.tls_cert is None) is not (args.tls_key is None):
        raise UsageError("--tls-cert and --tls-key go together")
    amounts = _recorded_amounts(args)
    names = tuple(args.tls_san or (_environment("tls_san") or "").replace(",", " ").split())
    numbers = {number.flag: _checked(number, getattr(args, _name(number.flag))) for number in _NUMBERS}
    try:
        from gpugate.webhook.admission.front.limits import Limits  # noqa: PLC0415 -- imports the whole server
        from gpugate.webhook.admission.options import API_SERVER, Recording  # noqa: PLC0415 -- as below
        from gpugate.webhook.admission.serve import ServeOptions, serve  # noqa: PLC0415 -- as above
        from gpugate.webhook.cluster.options import detect_cluster  # noqa: PLC0415 -- as above
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("gpugate"):
            raise
        raise UsageError(
            f"{error.name} is not installed\ninstall the extra `webhook`: run `pip install '.[webhook]'` in a checkout of gpugate"
        ) from None

    cluster = None if args.no_cluster else detect_cluster(args.kubeconfig, args.context, os.environ)
    return serve(
        ServeOptions(
            host=args.host,
            port=numbers["--port"],
            health_port=numbers["--health-port"],
            workers=numbers["--workers"],
            drain_seconds=numbers["--drain"],
            limits=Limits(connections=numbers["--max-connections"], per_source=numbers["--max-connections-per-source"]),
            policy_file=args.policy_file,
            shadow_policy_file=args.shadow_policy_file,
            identity=cluster_of(args),
            policy_paths=tuple(args.policy_path or map(Path, _listed(_environment("policy_paths")) or ())),
            tls_cert=args.tls_cert,
            tls_key=args.tls_key,
            tls_san=names,
            ca_file=args.ca_file,
            client_ca=args.client_ca,
            client_names=tuple(args.client_name or (API_SERVER,)),
            keeping=keeping(args, names, in_cluster=cluster is not None),
            cluster=cluster,
            namespace=args.namespace or _pod_namespace(),
            service=args.service,
            trace=args.trace,
            recording=Recording(args.record, *amounts) if args.record else None,
        ),
    )


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate serve",
        description="Answer AdmissionReviews over HTTPS at /mutate and /validate.",
        epilog="examples:\n  gpugate serve --no-cluster --port 8443\n  gpugate serve --tls-cert tls.crt --tls-key tls.key -p policy.yaml\n\n"
        "Flags with a value, except --cluster-*, can be set in the environment: --tls-cert as GPUGATE_TLS_CERT. A flag wins.",
    )
    listener = command.add_argument_group("addresses")
    host = _environment("host") or "0.0.0.0"  # noqa: S104 -- a Pod is reached by its address
    listener.add_argument("--host", default=host, help="address to listen on (default: all)")
    _add_numbers(listener, _LISTENER)
    _add_numbers(command.add_argument_group("processes and limits"), _PROCESSES)
    policies = command.add_argument_group("policies")
    _add_file(policies, "--policy-file", "policy file (default: every policy in its shipped mode)", "-p")
    _add_file(
        policies,
        "--shadow-policy-file",
        "policy file to compare with: evaluate answered reviews by it, without an effect",
    )
    options.add_policy_path(policies)
    add_identity(policies)
    _add_record(command)
    _add_cluster(command)
    certificate = command.add_argument_group("certificate files")
    _add_file(certificate, "--tls-cert", "certificate chain, PEM (default: a new certificate at each start)")
    _add_file(certificate, "--tls-key", "private key of the certificate, PEM")
    _add_file(certificate, "--ca-file", "write the CA of the new certificate to this file")
    certificate.add_argument(
        "--tls-san",
        action="append",
        metavar="NAME",
        help="further name or address in certificates that gpugate creates; repeatable",
    )
    _add_managed_certificates(command)
    _add_client_certificates(command)
    command.add_argument_group("traces").add_argument(
        "--trace",
        action="store_true",
        help="send a span for each review with OTLP; the variables OTEL_* configure it; needs gpugate[tracing]",
    )
    return command


def _add_record(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("record of reviews")
    folder = _environment("record")
    group.add_argument(
        "--record",
        type=Path,
        metavar="DIR",
        default=Path(folder) if folder else None,
        help="record answered reviews in this directory, without secrets, for `gpugate simulate --from DIR`",
    )
    group.add_argument(
        "--record-fraction",
        metavar="F",
        default=_environment("record_fraction") or "1",
        help="part of all reviews to record, above 0 and up to 1 (default: 1)",
    )
    group.add_argument(
        "--record-max",
        metavar="SIZE",
        default=_environment("record_max") or "256Mi",
        help="size of all files in the directory; the oldest are removed (default: 256Mi)",
    )


def _recorded_amounts(args: argparse.Namespace) -> tuple[float, int]:
    """Return the part of all reviews to record, and the bytes of all files.

    Raises:
        UsageError: the fraction or the size is invalid.
    """
    try:
        fraction = float(args.record_fraction)
    except ValueError:
        fraction = 0.0
    if not 0 < fraction <= 1:
        raise UsageError(_wrong("--record-fraction", args.record_fraction, "is not a number above 0 and up to 1"))
    size = quantity.parse_or_none(args.record_max)
    if size is None or not _SMALLEST_RECORD <= size <= _LARGEST_RECORD:
        raise UsageError(_wrong("--record-max", args.record_max, "is not a size from 1Mi to 1Ti"))
    return fraction, int(size)


def _wrong(flag: str, text: str, problem: str) -> str:
    """Say what is wrong with the value of a flag, and name the variable where it came from there."""
    variable = f"GPUGATE_{_name(flag).upper()}"
    where = f"{variable} (or {flag})" if os.environ.get(variable) == text else flag
    return f"{where}: {text!r} {problem}"


def _add_cluster(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("cluster data")
    _add_file(group, "--kubeconfig", "kubeconfig of the cluster (default: the cluster of this Pod, if any)")
    group.add_argument("--context", metavar="NAME", default=_environment("context"), help="context of the kubeconfig")
    group.add_argument("--no-cluster", action="store_true", help="read no cluster data, even in a Pod")


def _add_numbers(group: argparse._ArgumentGroup, numbers: Iterable[_Number]) -> None:
    for number in numbers:
        default = _environment(_name(number.flag)) or str(number.default)
        group.add_argument(number.flag, metavar="N", default=default, help=f"{number.text} (default: {number.default})")


def _add_file(group: argparse._ArgumentGroup, flag: str, text: str, *short: str) -> None:
    value = _environment(_name(flag))
    group.add_argument(flag, *short, type=Path, metavar="FILE", default=Path(value) if value else None, help=text)


def _checked(number: _Number, text: str) -> int:
    """Read a number, and name the variable where it came from there."""
    try:
        value = int(text)
    except ValueError:
        value = number.least - 1
    if not number.least <= value <= number.most:
        raise UsageError(_wrong(number.flag, text, f"is not a whole number from {number.least} to {number.most}"))
    return value


def _environment(name: str) -> str | None:
    return os.environ.get(f"GPUGATE_{name.upper()}") or None
