"""`gpugate registration`: the objects by which an API server sends its reviews to the webhook."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpugate.webhook.cli import options
from gpugate.webhook.cli.options import Parser, UsageError, checked_url
from gpugate.webhook.generate.entries import RiskGroup
from gpugate.webhook.generate.rbac import keeper_rbac, rbac
from gpugate.webhook.generate.registration import KARPENTER_USERS, Server, webhook_configurations
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_PEM = b"-----BEGIN CERTIFICATE-----"
_GROUPS = tuple(group.value for group in RiskGroup if group.may_wait)


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    for flag in ("namespace", "service", "service_account"):
        if not _LABEL.fullmatch(getattr(args, flag)):
            raise UsageError(
                f"--{flag.replace('_', '-')} {getattr(args, flag)}: is no name of lower case letters, digits and dashes"
            )
    if (args.ca_file is None) is not bool(args.certificate_secret):
        raise UsageError("give one of --ca-file, for a certificate of yours, and --certificate-secret, for kept ones")
    authority = _authority(args.ca_file) if args.ca_file else b""
    server = Server(authority, args.namespace, checked_url(args.url), args.service)
    ruleset = options.ruleset(args.policy_file)
    configurations = webhook_configurations(
        ruleset,
        server,
        fail=[RiskGroup(name) for name in args.fail],
        fail_mutating=[RiskGroup(name) for name in args.fail_mutating],
        karpenter_users=args.karpenter_user or KARPENTER_USERS,
    )
    # What it may read comes first, so that it knows the cluster when it is asked.
    rights = rbac(ruleset, args.namespace, args.service_account)
    if args.certificate_secret:
        configuration = configurations[0]["metadata"]["name"]
        named = (args.certificate_secret, configuration, configuration)
        rights += keeper_rbac(args.namespace, args.service_account, *named)
    objects = (*rights, *configurations)
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


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    made = Parser(
        prog="gpugate registration",
        description="Print what makes an API server ask the webhook, and what lets the webhook read what policies look up.",
        epilog="examples:\n  gpugate registration --certificate-secret certificates | kubectl apply -f -\n"
        "  gpugate registration --ca-file ca.pem -p policy.yaml | kubectl apply -f -\n\n"
        "Apply the output again after a policy file enables more policies.",
    )
    add = made.add_argument
    add("--url", metavar="URL", default="", help="where it answers: https://HOST:PORT (default: through the Service)")
    add("--ca-file", type=Path, metavar="FILE", help="authority that signed its certificate, PEM")
    add(
        "--certificate-secret",
        metavar="NAME",
        default="",
        help="let it keep certificates of authorities in this Secret, as `gpugate serve --certificate-secret` does, and "
        "publish them",
    )
    options.add_policy_file(made)
    add(
        "--namespace",
        metavar="NAME",
        default="gpugate",
        help="where it runs; nothing there is judged (default: gpugate)",
    )
    add("--service", metavar="NAME", default="gpugate", help="its Service (default: gpugate)")
    add("--service-account", metavar="NAME", default="gpugate", help="its ServiceAccount (default: gpugate)")
    waiting = "let requests of a group that could be {} fail while it does not answer; repeatable: " + ", ".join(
        _GROUPS
    )
    for flag, what in (("--fail", "refused"), ("--fail-mutating", "changed")):
        add(flag, action="append", choices=_GROUPS, default=[], metavar="GROUP", help=waiting.format(what))
    add(
        "--karpenter-user",
        action="append",
        metavar="NAME",
        help=f"who writes node pools without being asked about it; repeatable (default: {', '.join(KARPENTER_USERS)})",
    )
    return made
