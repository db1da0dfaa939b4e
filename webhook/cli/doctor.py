"""`gpugate doctor`: what is wrong with an installation of the webhook, and what to do about it."""

from __future__ import annotations

import datetime as dt
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from gpugate.webhook.cli import meant_flags, options
from gpugate.webhook.cli.options import Parser
from gpugate.webhook.cluster.connection import connect
from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.cluster.options import choose_cluster
from gpugate.webhook.generate.entries import RiskGroup
from gpugate.webhook.report import diagnosis as diagnosis_json
from gpugate.webhook.report import diagnosis as diagnosis_text
from gpugate.webhook.report import plain
from gpugate.webhook.report.diagnosis import INCOMPLETE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from gpugate.webhook.operate.doctor import DoctorOptions
    from gpugate.webhook.report.diagnosis import Diagnosis

_GROUPS = tuple(group.value for group in RiskGroup if group.may_wait)


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    from gpugate.webhook.operate.doctor import collect  # noqa: PLC0415 -- imports cryptography, which --help does not need
    from gpugate.webhook.operate.doctor_checks import examine  # noqa: PLC0415 -- as above

    ruleset = options.ruleset(args.policy_file) if args.policy_file else None
    connection = connect(choose_cluster(args.kubeconfig, args.context, os.environ))
    try:
        diagnosis = examine(collect(connection, _asked(args), ruleset, dt.datetime.now(dt.UTC)))
    except CallError as error:
        print(f"error: {error}", file=sys.stderr)
        return INCOMPLETE
    finally:
        connection.close()
    sys.stdout.write(_written(diagnosis, args))
    return diagnosis.exit_code


def _asked(args: argparse.Namespace) -> DoctorOptions:
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
    made = Parser(
        prog="gpugate doctor",
        description="Look at an installed webhook and say what is wrong with it: certificates, webhook configurations, "
        "Service, rights. Changes nothing.",
        epilog="examples:\n  gpugate doctor\n  gpugate doctor --probe --context prod\n\n"
        "Exit codes: 0 healthy; 1 at least one error; 2 wrong usage; 4 an object could not be read.",
    )
    add = made.add_argument
    options.add_cluster(made, environ)
    add(
        "-n",
        "--namespace",
        metavar="NAME",
        default=environ.get("GPUGATE_NAMESPACE"),
        help="where the webhook runs (default: what its configurations say, else gpugate)",
    )
    add(
        "--service",
        metavar="NAME",
        default=environ.get("GPUGATE_SERVICE"),
        help="its Service (default: what its configurations say, else gpugate)",
    )
    add("--service-account", metavar="NAME", help="its ServiceAccount (default: called like its configurations)")
    add(
        "--webhook-configuration",
        "--name",
        metavar="NAME",
        default=environ.get("GPUGATE_WEBHOOK_CONFIGURATION") or "gpugate",
        help="what both webhook configurations are called (default: gpugate)",
    )
    add(
        "--certificate-secret",
        metavar="NAME",
        default=environ.get("GPUGATE_CERTIFICATE_SECRET"),
        help="the Secret of its certificate authorities (default: called like its configurations, with -certificates, if "
        "there is one)",
    )
    add(
        "--lease", metavar="NAME", help="the Lease by which one replica leads (default: called like its configurations)"
    )
    add("--url", metavar="URL", default="", help="where it is meant to answer, if not behind a Service")
    options.add_policy_file(made, options.INSTALLED)
    for flag, what in (("--fail", "refused"), ("--fail-mutating", "changed")):
        add(
            flag,
            action="append",
            choices=(*_GROUPS, "none"),
            metavar="GROUP",
            help=f"of which groups requests that could be {what} are meant to wait for it, or none; repeatable: "
            f"{', '.join(_GROUPS)} (default: either is fine)",
        )
    meant_flags.add(made, lambda _: None)
    add(
        "--probe",
        action="store_true",
        help="ask the webhook too, through the API server (dry run) and by TLS from here",
    )
    add("-o", "--output", choices=("text", "json"), default="text", help="default: text")
    add("--color", choices=("auto", "always", "never"), default="auto", help="default: auto")
    return made
