"""`gpugate doctor`: check an installation of the webhook."""

from __future__ import annotations

import datetime as dt
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from gpugate.webhook.cli import options
from gpugate.webhook.cli.identity import add_identity, cluster_of
from gpugate.webhook.cli.options import Parser
from gpugate.webhook.cluster.connection import connect
from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.cluster.options import choose_cluster
from gpugate.webhook.operate import diagnosis as diagnosis_json
from gpugate.webhook.operate import diagnosis as diagnosis_text
from gpugate.webhook.operate.diagnosis import INCOMPLETE
from gpugate.webhook.own_policies.catalog import OwnPaths
from gpugate.webhook.registration import flags as meant_flags
from gpugate.webhook.registration.entries import RiskGroup
from gpugate.webhook.report import plain

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from gpugate.webhook.operate.diagnosis import Diagnosis
    from gpugate.webhook.operate.doctor import DoctorOptions

_GROUPS = tuple(group.value for group in RiskGroup if group.may_wait)


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    from gpugate.webhook.operate.doctor import collect  # noqa: PLC0415 -- imports cryptography, which --help does not need
    from gpugate.webhook.operate.doctor_checks import examine  # noqa: PLC0415 -- as above

    own = OwnPaths(tuple(args.policy_path))
    ruleset = options.ruleset(args.policy_file, own, cluster_of(args)) if args.policy_file else None
    connection = connect(choose_cluster(args.kubeconfig, args.context, os.environ))
    try:
        diagnosis = examine(collect(connection, _options(args), ruleset, dt.datetime.now(dt.UTC)))
    except CallError as error:
        print(f"error: {error}", file=sys.stderr)
        return INCOMPLETE
    finally:
        connection.close()
    sys.stdout.write(_written(diagnosis, args))
    return diagnosis.exit_code


def _options(args: argparse.Namespace) -> DoctorOptions:
    from gpugate.webhook.operate.doctor import DoctorOptions  # noqa: PLC0415 -- as above

    return DoctorOptions(
        namespace=args.namespace,
        service=args.service,
        service_account=args.service_account,
        configuration=args.webhook_configuration,
        secret=args.certificate_secret,
        lease=args.lease,
        url=args.url.rstrip("/"),
        meant=replace(meant_flags.meant(args), fail=_groups(args.fail), fail_mutating=_groups(args.fail_mutating)),
        probe=args.probe,
        policy_file=str(args.policy_file or ""),
        policy_paths=tuple(args.policy_path),
        identity=cluster_of(args),
    )


def _groups(names: Sequence[str] | None) -> tuple[RiskGroup, ...] | None:
    return None if names is None else tuple(RiskGroup(name) for name in names if name != "none")


def _written(diagnosis: Diagnosis, args: argparse.Namespace) -> str:
    if args.output == "json":
        return diagnosis_json.write_json(diagnosis)
    colours = plain.wanted(args.color, is_terminal=sys.stdout.isatty(), environment=os.environ)
    return diagnosis_text.write_text(diagnosis, plain.Paint(colours))


def parser(environ: Mapping[str, str] = os.environ) -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate doctor",
        description="Check an installed webhook: certificates, webhook configurations, Service, permissions. Report each "
        "problem with its fix. Changes nothing.",
        epilog="examples:\n  gpugate doctor\n  gpugate doctor --probe --context prod\n\n"
        "Exit codes: 0 healthy; 1 at least one error; 2 wrong usage; 4 an object could not be read.",
    )
    options.add_cluster(command.add_argument_group("cluster"), environ)
    add = command.add_argument_group("installation").add_argument
    add(
        "-n",
        "--namespace",
        metavar="NAME",
        default=environ.get("GPUGATE_NAMESPACE"),
        help="namespace of the webhook (default: the one in its configurations, else gpugate)",
    )
    add(
        "--service",
        metavar="NAME",
        default=environ.get("GPUGATE_SERVICE"),
        help="Service of the webhook (default: the one in its configurations, else gpugate)",
    )
    add(
        "--service-account",
        metavar="NAME",
        help="ServiceAccount of the webhook (default: the name of its configurations)",
    )
    add(
        "--webhook-configuration",
        "--name",
        metavar="NAME",
        default=environ.get("GPUGATE_WEBHOOK_CONFIGURATION") or "gpugate",
        help="name of both webhook configurations (default: gpugate)",
    )
    add(
        "--certificate-secret",
        metavar="NAME",
        default=environ.get("GPUGATE_CERTIFICATE_SECRET"),
        help="Secret of its certificate authorities (default: the name of its configurations with -certificates, if it "
        "exists)",
    )
    add("--lease", metavar="NAME", help="Lease of the leader (default: the name of its configurations)")
    add("--url", metavar="URL", default="", help="expected URL of the webhook, if it is not reached through a Service")
    expected = command.add_argument_group("expected webhook configurations (to report differences)")
    options.add_policy_file(expected, options.INSTALLED)
    add_identity(expected)
    options.add_policy_path(expected)
    for flag, effect in (("--fail", "denied"), ("--fail-mutating", "mutated")):
        expected.add_argument(
            flag,
            action="append",
            choices=(*_GROUPS, "none"),
            metavar="GROUP",
            help=f"expect failurePolicy: Fail for requests of this group that can be {effect}, or none; repeatable: "
            f"{', '.join(_GROUPS)} (default: accept both failure policies)",
        )
    meant_flags.add(expected, lambda _: None)
    add = command.add_argument_group("checks and output").add_argument
    add(
        "--probe",
        action="store_true",
        help="also probe the webhook through the API server (dry run), and by TLS from this machine",
    )
    add("-o", "--output", choices=("text", "json"), default="text", help="output format (default: text)")
    add("--color", choices=("auto", "always", "never"), default="auto", help="use colors (default: auto)")
    return command
