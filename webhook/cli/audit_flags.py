"""The flags of `gpugate audit`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.webhook.cli import options
from gpugate.webhook.cli.options import Parser
from gpugate.webhook.report.audit_formats import FORMATS
from gpugate.webhook.report.audit_presentation import GROUPS, HOURS_PER_MONTH

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

_EPILOG: Final = """examples:
  gpugate audit
  gpugate audit -o text -o html=audit.html
  gpugate audit --as-mode as-is --fail-on deny
  gpugate audit --from dump.json --compare last-week.json
  gpugate audit --print-rbac | kubectl apply -f -

A dump is the output of `kubectl get KINDS -A -o json` (or yaml), a directory of
such files, or a must-gather.

Exit codes: 0 success, with or without findings; 1 a finding reaches --fail-on;
2 wrong usage or configuration; 3 nothing to audit; 4 the cluster is unreachable,
or the coverage is below --require-coverage."""
PAGE: Final = 500
_QPS: Final = 50.0
_BURST: Final = 100


def parser(environ: Mapping[str, str] = os.environ) -> argparse.ArgumentParser:
    """Return the parser."""
    made = Parser(
        prog="gpugate audit",
        description="Say what the policies would block, change and warn about in a cluster, if its objects were created "
        "now, and what GPUs that concerns. Reads only, unless --write-reports is given.",
        epilog=_EPILOG,
    )
    _add_cluster(made, environ)
    _add_selection(made)
    _add_policies(made)
    _add_cost(made)
    _add_output(made)
    _add_outcome(made)
    return made


def _add_cluster(made: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    group = made.add_argument_group("what to audit")
    add = group.add_argument
    options.add_cluster(group, environ)
    add("--from", dest="dump", action="append", default=[], metavar="PATH", help="a dump instead; repeatable")
    add(
        "--complete-context",
        action="store_true",
        help="the dump has all objects of the cluster: of what it has none there is none",
    )
    add("--qps", type=_positive, default=_QPS, metavar="N", help=f"calls a second (default: {_QPS:g})")
    add("--burst", type=_count, default=_BURST, metavar="N", help=f"calls at once (default: {_BURST})")
    add("--chunk-size", type=_count, default=PAGE, metavar="N", help=f"objects in one answer (default: {PAGE})")


def _add_selection(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("what to report on (all objects are looked at, as facts for each other)")
    add = group.add_argument
    add("-n", "--namespace", action="append", default=[], metavar="NAME", help="only this namespace; repeatable")
    add("-A", "--all-namespaces", action="store_true", help="everything (the default)")
    add("-l", "--selector", metavar="SELECTOR", help="only objects with these labels, as kubectl has it")
    add("--exclude-namespace", action="append", default=[], metavar="NAME", help="not this namespace; repeatable")
    add("--include", action="append", default=[], metavar="KIND", help="only this kind; Pods count as what made them")
    add("--exclude", action="append", default=[], metavar="KIND", help="not this kind; repeatable")


def _add_policies(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("policies")
    options.add_policy_file(group, options.INSTALLED)
    add = group.add_argument
    add(
        "--with-installed",
        action="store_true",
        help="the policy file that is installed in the cluster (the default where there is one)",
    )
    add("--select", action="append", default=[], metavar="ID", help="only these policies; ID or pattern, repeatable")
    add("--ignore", action="append", default=[], metavar="ID", help="without these policies; ID or pattern, repeatable")
    add(
        "--as-mode",
        choices=("enforce", "warn", "audit", "as-is"),
        default="enforce",
        help="as if the policy file said `mode:` so (default: enforce), or what it says as it is",
    )


def _add_cost(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("cost")
    add = group.add_argument
    add("--no-cost", action="store_true", help="say nothing of money")
    add("--price-table", type=Path, metavar="FILE", help="prices of instance types that win over the list, CSV or YAML")
    add("--hours-per-month", type=_positive, default=HOURS_PER_MONTH, metavar="N", help="default: %(default)g")


def _add_output(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("output")
    add = group.add_argument
    others = ", ".join(FORMATS[1:])
    add("-o", "--output", action="append", metavar="FMT[=FILE]", help=f"{FORMATS[0]} (default), {others}; repeatable")
    add("--group-by", choices=GROUPS, help="one table of findings, by this")
    add("--top", type=_natural, default=10, metavar="N", help="rows of a table, 0 for all (default: %(default)d)")
    add("--include-passed", action="store_true", help="list objects too in which nothing was found")
    add("--compare", type=Path, metavar="OLD.json", help="say what is new and what is fixed since that audit")
    add("--anonymize", action="store_true", help="pseudonyms instead of names")
    add("--salt", metavar="TEXT", help="with --anonymize: the same pseudonyms in every run")
    add("--write-exemptions", metavar="FILE", help="a policy file with an exemption for each object to be blocked")
    add("--exemption-days", type=_count, default=90, metavar="N", help="how long they hold (default: %(default)d)")
    add("--exemption-owner", default="", metavar="NAME", help="who answers for them")
    add(
        "--write-reports",
        action="store_true",
        help="keep report objects in the cluster: openreports.io, or wgpolicyk8s.io",
    )
    add("--summary-log", action="store_true", help="one line of JSON on standard error")
    add("--color", choices=("auto", "always", "never"), default="auto", help="NO_COLOR and FORCE_COLOR are honoured")
    add("-q", "--quiet", action="store_true", help="no progress bar")


def _add_outcome(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("outcome")
    add = group.add_argument
    add("--fail-on", choices=("deny", "mutate", "warn", "never"), default="never", help="exit with 1 on this, or worse")
    add(
        "--require-coverage",
        "--min-coverage",
        type=_percent,
        metavar="PERCENT",
        help="exit with 4 when less of what should have been evaluated was",
    )
    add("--print-rbac", action="store_true", help="print the rights that this needs in the cluster, and end")
    add(
        "--service-account",
        default="gpugate/gpugate-audit",
        metavar="NAMESPACE/NAME",
        help="with --print-rbac: who gets them (default: %(default)s)",
    )


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


def _natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError
    return value


def _count(text: str) -> int:
    value = _natural(text)
    if not value:
        raise ValueError
    return value


def _percent(text: str) -> float:
    value = float(text.removesuffix("%"))
    if not 0 <= value <= 100:
        raise ValueError
    return value
