"""`gpugate review`: what admission would do with one object."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import Operation
from gpugate.webhook.cli import options, project_flags
from gpugate.webhook.cli.command_parser import Parser
from gpugate.webhook.cli.review_input import Asked, UnreadableError, request

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.policies.engine.verdict import Verdict

_INCOMPLETE = 4


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args, project = project_flags.parse(parser(), "review", arguments)
    for remark in project.remarks:
        print(f"warning: {remark}", file=sys.stderr)
    ruleset = options.ruleset(args.policy_file)
    asked = Asked(args.operation, args.old, args.user or "", tuple(args.groups), args.namespace)
    try:
        found = request(args.file, asked)
    except UnreadableError as error:
        print(f"error: {error}", file=sys.stderr)
        return _INCOMPLETE
    today = dt.datetime.now(dt.UTC).date()
    verdict = evaluate(ruleset, found, NoFacts(), today=today, phase=Phase.BOTH, template_ceiling=Stance.ENFORCE)
    sys.stdout.write(_written(verdict, args.output))
    return _exit_code(verdict)


def _written(verdict: Verdict, output: str) -> str:
    if output == "json":
        from gpugate.webhook.report import review_formats  # noqa: PLC0415 -- only the format that is asked for

        return review_formats.write_json(verdict)
    from gpugate.webhook.report import review_formats  # noqa: PLC0415 -- only the format that is asked for

    return review_formats.write_text(verdict)


def _exit_code(verdict: Verdict) -> int:
    if verdict.is_malformed or any(finding.stance is Stance.ENFORCE for finding in verdict.findings):
        return 1
    return _INCOMPLETE if any(outcome.error for outcome in verdict.outcomes) else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    made = Parser(
        prog="gpugate review",
        description="Show what admission would do with one object: decision, patch, the object as stored, warnings.",
    )
    add = made.add_argument
    add("file", metavar="FILE", help="an object or an AdmissionReview, YAML or JSON; - for standard input")
    add("--operation", type=Operation, choices=list(Operation)[:3], help="default: CREATE, or UPDATE with --old")
    add("--old", type=Path, metavar="FILE", help="the object before an UPDATE")
    add("--as", dest="user", metavar="USER", help="who asks")
    add("--as-group", dest="groups", action="append", default=[], metavar="GROUP", help="repeatable")
    add("-n", "--namespace", help="the namespace of an object that names none (default: default)")
    add("-o", "--output", choices=("text", "json"), default="text", help="default: text")
    options.add_policy_file(made, options.OF_THE_PROJECT)
    project_flags.add(made)
    return made
