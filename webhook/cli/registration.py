"""`gpugate registration`: the objects by which an API server sends its reviews to the webhook."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gpugate.webhook.cli import options
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.generate.rbac import rbac
from gpugate.webhook.generate.registration import Server, webhook_configurations
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    from collections.abc import Sequence

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_PEM = b"-----BEGIN CERTIFICATE-----"
_POLICIES = ("Fail", "Ignore")


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = _parser().parse_args(arguments)
    for flag in ("namespace", "service", "service_account"):
        if not _LABEL.fullmatch(getattr(args, flag)):
            raise UsageError(
                f"--{flag.replace('_', '-')} {getattr(args, flag)}: is no name of lower case letters, digits and dashes"
            )
    server = Server(_authority(args.ca_file), args.namespace, _checked(args.url), args.service)
    ruleset = options.ruleset(args.policy_file)
    configurations = webhook_configurations(
        ruleset,
        server,
        failure_policy=args.failure_policy,
        mutating_failure_policy=args.mutating_failure_policy,
    )
    # What it may read comes first, so that it knows the cluster when it is asked.
    objects = (*rbac(ruleset, args.namespace, args.service_account), *configurations)
    sys.stdout.write("---\n".join(yaml_text.block(each) for each in objects))
    return 0


def _authority(file: Path) -> bytes:
    try:
        found = file.read_bytes()
    except OSError as error:
        raise UsageError(f"--ca-file {file}: {(error.strerror or 'cannot be read').lower()}") from None
    if _PEM not in found:
        raise UsageError(f"--ca-file {file}: holds no certificate in PEM")
    if b"PRIVATE KEY" in found:
        raise UsageError(
            f"--ca-file {file}: holds a private key, which everybody could read then; give certificates only"
        )
    return found


def _checked(url: str) -> str:
    """Return a URL that the API server takes (`k8s.io/apiserver` pkg/util/webhook/validation.go, v0.36)."""
    if not url:
        return url
    try:
        found = urlsplit(url)
        wrong = found.scheme != "https" or not found.hostname or found.port == 0
    except ValueError:
        wrong = True
    else:
        wrong = wrong or found.path not in {"", "/"} or bool(found.query or found.fragment or found.username)
    if wrong:
        raise UsageError(f"--url {url}: write https://HOST:PORT, without a path: /mutate and /validate are added")
    return url


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpugate registration",
        description="Print what makes an API server ask the webhook, and what lets the webhook read what policies look up.",
        epilog="Where a policy file turns on more than before, apply it again: "
        "gpugate registration ... | kubectl apply -f -",
    )
    add = parser.add_argument
    add("--url", metavar="URL", default="", help="where it answers: https://HOST:PORT (default: through the Service)")
    add("--ca-file", type=Path, metavar="FILE", required=True, help="authority that signed its certificate, PEM")
    options.add_policy_file(parser)
    add(
        "--namespace",
        metavar="NAME",
        default="gpugate",
        help="where it runs; nothing there is judged (default: gpugate)",
    )
    add("--service", metavar="NAME", default="gpugate", help="its Service (default: gpugate)")
    add("--service-account", metavar="NAME", default="gpugate", help="its ServiceAccount (default: gpugate)")
    failing = "what becomes of requests that could be {} while it does not answer (default: {})"
    add("--failure-policy", choices=_POLICIES, default="Fail", help=failing.format("refused", "Fail"))
    add("--mutating-failure-policy", choices=_POLICIES, default="Ignore", help=failing.format("changed", "Ignore"))
    return parser
