"""`gpugate registration`: print the webhook configurations and RBAC to apply."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpugate.webhook.cli import options
from gpugate.webhook.cli.identity import add_identity, cluster_of
from gpugate.webhook.cli.options import Parser, UsageError, checked_url
from gpugate.webhook.own_policies.catalog import OwnPaths
from gpugate.webhook.registration.entries import RiskGroup
from gpugate.webhook.registration.objects import KARPENTER_USERS, Server, webhook_configurations
from gpugate.webhook.registration.own_requests import chart_values, own_policies
from gpugate.webhook.registration.rbac import event_rbac, keeper_rbac, rbac
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.policies.engine.ruleset import Ruleset

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_PEM = b"-----BEGIN CERTIFICATE-----"
_GROUPS = tuple(group.value for group in RiskGroup if group.may_wait)


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    for flag in ("namespace", "service", "service_account"):
        if not _LABEL.fullmatch(getattr(args, flag)):
            raise UsageError(
                f"--{flag.replace('_', '-')} {getattr(args, flag)}: must consist of lower-case letters, digits and dashes"
            )
    if args.chart_values:
        sys.stdout.write(yaml_text.block(chart_values(_ruleset(args))))
        return 0
    if (args.ca_file is None) is not bool(args.certificate_secret):
        raise UsageError(
            "set either --ca-file, for your own certificate, or --certificate-secret, for certificates that gpugate manages"
        )
    authority = _authority(args.ca_file) if args.ca_file else b""
    server = Server(authority, args.namespace, checked_url(args.url), args.service)
    ruleset = _ruleset(args)
    configurations = webhook_configurations(
        ruleset,
        server,
        fail=[RiskGroup(name) for name in args.fail],
        fail_mutating=[RiskGroup(name) for name in args.fail_mutating],
        karpenter_users=args.karpenter_user or KARPENTER_USERS,
    )
    # RBAC comes first, so that the webhook can read the cluster before it receives requests.
    rights = rbac(ruleset, args.namespace, args.service_account)
    if own_policies(ruleset):
        rights += event_rbac(args.namespace, args.service_account)
    if args.certificate_secret:
        configuration = configurations[0]["metadata"]["name"]
        named = (args.certificate_secret, configuration, configuration)
        rights += keeper_rbac(args.namespace, args.service_account, *named)
    objects = (*rights, *configurations)
    sys.stdout.write("---\n".join(yaml_text.block(obj) for obj in objects))
    return 0


def _ruleset(args: argparse.Namespace) -> Ruleset:
    return options.ruleset(args.policy_file, OwnPaths(tuple(args.policy_path)), cluster_of(args))


def _authority(file: Path) -> bytes:
    try:
        certificates = file.read_bytes()
    except OSError as error:
        raise UsageError(f"--ca-file {file}: {(error.strerror or 'cannot be read').lower()}") from None
    if _PEM not in certificates:
        raise UsageError(f"--ca-file {file}: contains no PEM certificate")
    if b"PRIVATE KEY" in certificates:
        raise UsageError(
            f"--ca-file {file}: contains a private key, which would become public: remove it from the file"
        )
    return certificates


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate registration",
        description="Print the webhook configurations, and the RBAC objects that let the webhook read cluster data.",
        epilog="examples:\n  gpugate registration --certificate-secret gpugate-certificates\n"
        "  gpugate registration --ca-file ca.pem -p policy.yaml | kubectl apply -f -\n"
        "  gpugate registration --chart-values --policy-path policies > own-values.yaml\n\n"
        "Apply the output again after a policy file enables more policies.",
    )
    add = command.add_argument
    add("--url", metavar="URL", default="", help="URL of the webhook: https://HOST:PORT (default: through the Service)")
    add("--ca-file", type=Path, metavar="FILE", help="CA of the serving certificate, PEM")
    add(
        "--certificate-secret",
        metavar="NAME",
        default="",
        help="let the webhook manage its certificates in this Secret, as `gpugate serve --certificate-secret` does",
    )
    add(
        "--chart-values",
        action="store_true",
        help="print values of the Helm chart that register policies outside the library, and nothing else",
    )
    options.add_policy_file(command)
    add_identity(command)
    options.add_policy_path(command)
    add(
        "--namespace",
        metavar="NAME",
        default="gpugate",
        help="namespace of the webhook, whose objects are not evaluated (default: gpugate)",
    )
    add("--service", metavar="NAME", default="gpugate", help="Service of the webhook (default: gpugate)")
    add("--service-account", metavar="NAME", default="gpugate", help="ServiceAccount of the webhook (default: gpugate)")
    waiting = "set failurePolicy: Fail for requests of this group that can be {}; repeatable: " + ", ".join(_GROUPS)
    for flag, effect in (("--fail", "denied"), ("--fail-mutating", "mutated")):
        add(flag, action="append", choices=_GROUPS, default=[], metavar="GROUP", help=waiting.format(effect))
    add(
        "--karpenter-user",
        action="append",
        metavar="NAME",
        help=f"user of Karpenter, whose changes of NodePools are not evaluated; repeatable (default: {', '.join(KARPENTER_USERS)})",
    )
    return command
