"""The flags of `gpugate audit`."""

from __future__ import annotations

import argparse
import os
import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import near_misses
from gpugate.webhook.audit.cost.gpu_metrics import METRICS
from gpugate.webhook.audit.cost.prices import CAPACITIES
from gpugate.webhook.audit.formats.names import FORMATS
from gpugate.webhook.audit.formats.presentation import GROUPS, HOURS_PER_MONTH
from gpugate.webhook.audit.tables import TABLE_FORMATS
from gpugate.webhook.cli import options
from gpugate.webhook.cli.identity import add_identity
from gpugate.webhook.cli.options import Parser
from gpugate.webhook.project.read import URL

if TYPE_CHECKING:
    from collections.abc import Mapping

_EPILOG: Final = """examples:
  gpugate audit
  gpugate audit -o text -o html=audit.html
  gpugate audit --prometheus http://prometheus.monitoring:9090
  gpugate audit --as-mode as-is --fail-on deny
  gpugate audit --contexts 'prod-*' --parallel 8 -o 'html={cluster}.html'
  gpugate audit --from dump.json --compare last-week.json
  gpugate audit --print-rbac | kubectl apply -f -

A dump is the output of `kubectl get KINDS -A -o json` (or yaml), a directory of
such files, or a must-gather.

Exit codes: 0 success, with or without findings; 1 a finding reaches --fail-on;
2 wrong usage or configuration; 3 nothing to audit; 4 the cluster is unreachable,
the coverage is below --require-coverage, or tables could not be written."""
PAGE: Final = 500
_QPS: Final = 50.0
_BURST: Final = 100
_PARALLEL: Final = 4
_CLUSTER_SECONDS: Final = 600.0


def parser(environ: Mapping[str, str] = os.environ) -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate audit",
        description="Report which objects of a cluster the webhook would deny, mutate or warn about if they were created "
        "now, and the cost of their GPUs. Changes nothing without --write-reports.",
        epilog=_EPILOG,
    )
    _add_cluster(command, environ)
    _add_selection(command)
    _add_policies(command)
    _add_cost(command)
    _add_use(command)
    _add_output(command)
    _add_outcome(command)
    return command


def _add_cluster(command: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    group = command.add_argument_group("source")
    add = group.add_argument
    options.add_cluster(group, environ)
    add(
        "--contexts",
        action="append",
        default=[],
        metavar="PATTERN",
        help="audit the clusters of all contexts that match, such as 'prod-*', in one report; repeatable",
    )
    add(
        "--parallel",
        type=options.count,
        default=_PARALLEL,
        metavar="N",
        help="clusters at a time (default: %(default)d)",
    )
    add(
        "--cluster-timeout",
        type=options.seconds,
        default=_CLUSTER_SECONDS,
        metavar="TIME",
        help="with --contexts: time limit for a cluster (default: 10m)",
    )
    options.add_dump(group, "audit a dump instead of a cluster")
    add_identity(group)
    add(
        "--complete-context",
        action="store_true",
        help="treat the dump as the complete cluster state",
    )
    add("--qps", type=_positive, default=_QPS, metavar="N", help=f"maximum API calls per second (default: {_QPS:g})")
    add(
        "--burst",
        type=options.count,
        default=_BURST,
        metavar="N",
        help=f"maximum burst of API calls (default: {_BURST})",
    )
    add(
        "--chunk-size",
        type=options.count,
        default=PAGE,
        metavar="N",
        help=f"objects per page of a list (default: {PAGE})",
    )


def _add_selection(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("selection of reported objects (all objects are read as cluster data)")
    add = group.add_argument
    add("-n", "--namespace", action="append", default=[], metavar="NAME", help="only this namespace; repeatable")
    add("-A", "--all-namespaces", action="store_true", help="all namespaces (default)")
    add("-l", "--selector", metavar="SELECTOR", help="only objects with these labels, in the syntax of kubectl")
    add("--exclude-namespace", action="append", default=[], metavar="NAME", help="exclude this namespace; repeatable")
    add("--include", action="append", default=[], metavar="KIND", help="only this kind of top-level owner; repeatable")
    add("--exclude", action="append", default=[], metavar="KIND", help="exclude this kind; repeatable")


def _add_policies(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("policies")
    options.add_policy_file(group, options.INSTALLED)
    options.add_policy_path(group)
    options.add_catalogue(group)
    add = group.add_argument
    add(
        "--with-installed",
        action="store_true",
        help="use the policy file that is installed in the cluster (default if there is one)",
    )
    add("--select", action="append", default=[], metavar="ID", help="only these policies; ID or pattern, repeatable")
    add("--ignore", action="append", default=[], metavar="ID", help="skip these policies; ID or pattern, repeatable")
    add(
        "--as-mode",
        choices=("enforce", "warn", "audit", "as-is"),
        default="enforce",
        help="evaluate with this mode for all policies (default: enforce); as-is keeps the modes of the policy file",
    )


def _add_cost(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("cost")
    add = group.add_argument
    add("--no-cost", action="store_true", help="omit the cost of GPUs")
    add("--price-table", type=Path, metavar="FILE", help="your own prices of instance types, CSV or YAML")
    add(
        "--discount",
        action="append",
        default=[],
        type=_discount,
        metavar="CAPACITY=PERCENT",
        help="discount on list prices of on-demand, spot or reserved nodes, such as spot=60; repeatable",
    )
    add(
        "--hours-per-month",
        type=_positive,
        default=HOURS_PER_MONTH,
        metavar="N",
        help="hours in a month, for costs per month (default: %(default)g)",
    )


def _add_use(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("use of GPUs, from the metrics of their exporter")
    add = group.add_argument
    add("--prometheus", metavar="URL", help="address of a Prometheus, Thanos or Mimir that has these metrics")
    add(
        "--prometheus-window",
        type=_window,
        default=86400,
        metavar="TIME",
        help="time before the audit to look at, from 30m to 30d (default: 24h)",
    )
    add(
        "--idle-budget",
        type=_amount,
        metavar="USD",
        help="what idle and parked GPUs may cost per hour; reports and metrics compare with it",
    )
    add("--prometheus-token-file", type=Path, metavar="FILE", help="file with a bearer token")
    add("--prometheus-user", default="", metavar="NAME", help="user for basic authentication")
    add("--prometheus-password-file", type=Path, metavar="FILE", help="file with the password of this user")
    add("--prometheus-ca", type=Path, metavar="FILE", help="certificate authorities of the server, PEM")
    add("--prometheus-tenant", default="", metavar="ID", help="tenant, for Mimir, Cortex and Thanos")
    add(
        "--prometheus-timeout",
        type=_positive,
        default=30.0,
        metavar="N",
        help="seconds for a query (default: %(default)g)",
    )
    add(
        "--prometheus-matcher",
        action="append",
        default=[],
        type=_matcher,
        metavar="MATCHER",
        help="read only series with this label, such as 'cluster=\"prod\"'; repeatable",
    )
    add(
        "--prometheus-metric",
        action="append",
        default=[],
        type=_metric,
        metavar="NAME=OTHER",
        help="read a metric from a recording rule or under another name; repeatable",
    )


def _add_output(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("output")
    add = group.add_argument
    others, tables = ", ".join(FORMATS[1:]), " and ".join(TABLE_FORMATS)
    add(
        "-o",
        "--output",
        action="append",
        metavar="FMT[=FILE]",
        help=f"{FORMATS[0]} (default), {others}, to standard output or a file; {tables} write tables for SQL engines to a "
        "directory or a bucket, such as parquet=s3://bucket/audits; repeatable",
    )
    add("--group-by", choices=GROUPS, help="add a table of objects by this group")
    add(
        "--top",
        type=options.natural,
        default=10,
        metavar="N",
        help="maximum rows of a table, 0 for all (default: %(default)d)",
    )
    add("--include-passed", action="store_true", help="also list objects without findings")
    add(
        "--docs-url",
        type=_address,
        metavar="URL",
        help="address of your documentation site, for helpUri in SARIF",
    )
    add(
        "--compare",
        action="append",
        default=[],
        type=Path,
        metavar="OLD",
        help="show what changed since an earlier audit (-o json=OLD) or those of a directory of --history; repeatable",
    )
    add(
        "--history",
        type=Path,
        metavar="DIR",
        help="append the figures of this audit to a file in this directory, and compare with those of earlier ones",
    )
    add("--anonymize", action="store_true", help="replace names with pseudonyms")
    add("--salt", metavar="TEXT", help="with --anonymize: use the same pseudonyms in every run")
    add(
        "--write-exemptions",
        metavar="FILE",
        help="write a policy file with exemptions for all objects that would be denied",
    )
    add(
        "--exemption-days",
        type=options.count,
        default=90,
        metavar="N",
        help="days until the exemptions expire (default: %(default)d)",
    )
    add("--exemption-owner", default="", metavar="NAME", help="owner of the exemptions")
    add(
        "--write-reports",
        action="store_true",
        help="write report objects into the cluster: openreports.io, else wgpolicyk8s.io",
    )
    add("--summary-log", action="store_true", help="print a summary as one JSON line on standard error")
    add(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="use colors (default: auto, which honors NO_COLOR and FORCE_COLOR)",
    )
    add("-q", "--quiet", action="store_true", help="hide the progress bar")


def _add_outcome(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("exit code and permissions")
    add = group.add_argument
    add(
        "--fail-on",
        choices=("deny", "mutate", "warn", "never"),
        default="never",
        help="exit with 1 if an object has this action or a worse one (default: %(default)s)",
    )
    add(
        "--require-coverage",
        "--min-coverage",
        type=_percent,
        metavar="PERCENT",
        help="exit with 4 if the coverage is lower",
    )
    add("--print-rbac", action="store_true", help="print the RBAC objects that the audit needs, and exit")
    add(
        "--service-account",
        default="gpugate/gpugate-audit",
        metavar="NAMESPACE/NAME",
        help="with --print-rbac: the ServiceAccount (default: %(default)s)",
    )


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


def _amount(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError
    return value


def _discount(text: str) -> tuple[str, Fraction]:
    capacity, _, percent = text.partition("=")
    if capacity not in CAPACITIES or not _PERCENTAGE.fullmatch(percent) or not 0 <= Fraction(percent.rstrip("%")) < 100:
        raise argparse.ArgumentTypeError(
            f"invalid discount {text!r}: write one of {', '.join(CAPACITIES)}, and a percentage below 100, such as spot=60"
        )
    return capacity, Fraction(percent.rstrip("%")) / 100


_PERCENTAGE: Final = re.compile(r"\d{1,2}(?:\.\d{1,4})?%?")
_METRIC: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


def _window(text: str) -> int:
    try:
        seconds = int(options.duration(text).total_seconds())
    except ValueError:
        seconds = 0
    if not 30 * 60 <= seconds <= 30 * 86400:
        raise argparse.ArgumentTypeError(f"invalid time {text!r}: write one from 30m to 30d, such as 24h")
    return seconds


_MATCHER: Final = re.compile(r'[a-zA-Z_][a-zA-Z0-9_]*(?:=|!=|=~|!~)"[^"\\\n]*"')


def _matcher(text: str) -> str:
    if not _MATCHER.fullmatch(text):
        raise argparse.ArgumentTypeError(f"invalid matcher {text!r}: write one such as 'cluster=\"prod\"'")
    return text


def _metric(text: str) -> tuple[str, str]:
    name, _, other = text.partition("=")
    if name not in METRICS:
        near = near_misses(name, METRICS)
        meant = f"; did you mean {near[0]}?" if near else ": write one of the names in docs/how-to/idle-gpus.md"
        raise argparse.ArgumentTypeError(f"unknown metric {name}{meant}")
    if not _METRIC.fullmatch(other):
        raise argparse.ArgumentTypeError(f"{text}: write NAME=OTHER, where OTHER is the name of a metric")
    return name, other


def _address(text: str) -> str:
    if not URL.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"invalid address {text!r}: write one such as https://docs.example.com/gpugate/"
        )
    return text


def _percent(text: str) -> float:
    value = float(text.removesuffix("%"))
    if not 0 <= value <= 100:
        raise ValueError
    return value
