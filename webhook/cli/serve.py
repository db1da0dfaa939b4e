"""`gpugate serve`: the webhook; flags with fallbacks in the environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpugate.webhook.cli import serve_certificates
from gpugate.webhook.cli.command_parser import Parser
from gpugate.webhook.cli.options import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


class _Number(NamedTuple):
    flag: str
    default: int
    least: int
    most: int
    text: str


_NUMBERS = (
    _Number("--port", 8443, 0, 65535, "port for reviews, TLS; 0 takes a free one"),
    _Number("--health-port", 8081, 0, 65535, "port for /healthz, /readyz and /metrics, plain HTTP"),
    _Number("--workers", 2, 1, 64, "processes that serve"),
    _Number("--drain", 10, 0, 600, "seconds for which new connections are still accepted after a SIGTERM"),
    _Number("--max-connections", 4096, 1, 1_000_000, "most connections of one worker"),
    _Number("--max-connections-per-source", 512, 1, 1_000_000, "most of them from one address"),
)
_FILES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("--policy-file", ("-p",), "policy.yaml (default: every policy as shipped)"),
    ("--tls-cert", (), "certificate chain, PEM (default: one made at start)"),
    ("--tls-key", (), "its private key, PEM"),
    ("--ca-file", (), "where to write the certificate authority made at start"),
    ("--kubeconfig", (), "cluster to look other objects up in (default: the one this runs in, if any)"),
)


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    if (args.tls_cert is None) is not (args.tls_key is None):
        raise UsageError("--tls-cert and --tls-key go together")
    names = tuple(args.tls_san or (_environment("tls_san") or "").replace(",", " ").split())
    numbers = {number.flag: _checked(number, getattr(args, _name(number.flag))) for number in _NUMBERS}
    try:
        from gpugate.webhook.admission.front.limits import Limits  # noqa: PLC0415 -- imports the whole server
        from gpugate.webhook.admission.options import API_SERVER  # noqa: PLC0415 -- as below
        from gpugate.webhook.admission.serve import ServeOptions, serve  # noqa: PLC0415 -- as above
        from gpugate.webhook.cluster.options import detect  # noqa: PLC0415 -- as above
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("gpugate"):
            raise
        raise UsageError(
            f"{error.name} is not installed: install gpugate with its extra `webhook`: `pip install '.[webhook]'` in its checkout"
        ) from None

    cluster = None if args.no_cluster else detect(args.kubeconfig, args.context, os.environ)
    return serve(
        ServeOptions(
            host=args.host,
            port=numbers["--port"],
            health_port=numbers["--health-port"],
            workers=numbers["--workers"],
            drain_seconds=numbers["--drain"],
            limits=Limits(connections=numbers["--max-connections"], per_source=numbers["--max-connections-per-source"]),
            policy_file=args.policy_file,
            tls_cert=args.tls_cert,
            tls_key=args.tls_key,
            tls_san=names,
            ca_file=args.ca_file,
            client_ca=args.client_ca,
            client_names=tuple(args.client_name or (API_SERVER,)),
            keeping=serve_certificates.keeping(args, names, in_cluster=cluster is not None),
            cluster=cluster,
            trace=args.trace,
        ),
    )


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    made = Parser(
        prog="gpugate serve",
        description="Answer AdmissionReviews over HTTPS at /mutate and /validate.",
        epilog="Each flag can be set in the environment: --tls-cert as GPUGATE_TLS_CERT. A flag wins.",
    )
    add = made.add_argument
    add("--host", default=_environment("host") or "0.0.0.0", help="address to listen on (default: all)")  # noqa: S104 -- a Pod is reached by its address
    for number in _NUMBERS:
        default = _environment(_name(number.flag)) or str(number.default)
        add(number.flag, metavar="N", default=default, help=f"{number.text} (default: {number.default})")
    for flag, short, text in _FILES:
        value = _environment(_name(flag))
        add(flag, *short, type=Path, metavar="FILE", default=Path(value) if value else None, help=text)
    add(
        "--tls-san",
        action="append",
        metavar="NAME",
        help="further name or address for a certificate that is made here; repeatable",
    )
    serve_certificates.add(made, _environment)
    add("--context", metavar="NAME", default=_environment("context"), help="context of the kubeconfig")
    add("--no-cluster", action="store_true", help="look nothing up, also where there is a cluster around this Pod")
    add(
        "--trace",
        action="store_true",
        help="send a span for each review by OTLP, as OTEL_* say; needs gpugate[tracing]",
    )
    return made


def _checked(number: _Number, given: str) -> int:
    """Read a number, and name the variable where it came from there."""
    try:
        value = int(given)
    except ValueError:
        value = number.least - 1
    if not number.least <= value <= number.most:
        variable = f"GPUGATE_{_name(number.flag).upper()}"
        where = f"{variable} (or {number.flag})" if os.environ.get(variable) == given else number.flag
        raise UsageError(f"{where}: {given!r} is not a whole number from {number.least} to {number.most}")
    return value


def _name(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _environment(name: str) -> str | None:
    return os.environ.get(f"GPUGATE_{name.upper()}") or None
