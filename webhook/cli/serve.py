"""`gpugate serve`: the webhook; flags with fallbacks in the environment."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from gpugate.webhook.cli.options import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_PORT = 8443
_FILES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("--policy-file", ("-p",), "policy.yaml (default: every policy as shipped)"),
    ("--tls-cert", (), "certificate chain, PEM (default: one made at start)"),
    ("--tls-key", (), "its private key, PEM"),
    ("--ca-file", (), "where to write the certificate authority made at start"),
)


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = _parser().parse_args(arguments)
    if (args.tls_cert is None) is not (args.tls_key is None):
        raise UsageError("--tls-cert and --tls-key go together")
    try:
        from gpugate.webhook.admission.serve import ServeOptions, serve  # noqa: PLC0415 -- imports the whole server
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("gpugate"):
            raise
        raise UsageError(f"{error.name} is not installed: pip install 'gpugate[webhook]'") from None

    return serve(
        ServeOptions(
            host=args.host,
            port=args.port,
            policy_file=args.policy_file,
            tls_cert=args.tls_cert,
            tls_key=args.tls_key,
            tls_san=tuple(args.tls_san or (_environment("tls_san") or "").replace(",", " ").split()),
            ca_file=args.ca_file,
        ),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpugate serve",
        description="Answer AdmissionReviews over HTTPS at /mutate and /validate.",
        epilog="Each flag can be set in the environment: --tls-cert as GPUGATE_TLS_CERT. A flag wins.",
    )
    add = parser.add_argument
    add("--host", default=_environment("host") or "0.0.0.0", help="address to listen on (default: all)")  # noqa: S104 -- a Pod is reached by its address
    add("--port", type=int, default=_environment("port") or str(_PORT), help=f"default: {_PORT}")
    for flag, short, text in _FILES:
        value = _environment(flag.removeprefix("--").replace("-", "_"))
        add(flag, *short, type=Path, metavar="FILE", default=Path(value) if value else None, help=text)
    add(
        "--tls-san",
        action="append",
        metavar="NAME",
        help="name or address for the certificate made at start; repeatable",
    )
    return parser


def _environment(name: str) -> str | None:
    return os.environ.get(f"GPUGATE_{name.upper()}") or None
