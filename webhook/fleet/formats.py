"""A fleet report as text, JSON and CSV, and the phrases that all formats share."""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.formats.csv import cell as csv_cell
from gpugate.webhook.report.plain import BOLD, DIM, RED, YELLOW, Paint, aligned, plain, plain_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gpugate.webhook.fleet.model import Fault, Figures, FleetReport, GpuFigures, Regression

FORMATS: Final = ("text", "json", "csv", "html")
NO_NAME: Final = {"team": "(no team)", "region": "(no region)", "policy": "(none)", "model": "(unknown)"}
_NAMED: Final = 3
_MOST_PROBLEMS: Final = 20
_HEADER: Final = ("spend", "allocated", "idle or parked", "at risk", "unbounded", "denied", "warned")


def render_json(report: FleetReport) -> str:
    """Write a report, indented."""
    return plain_json(msgspec.json.format(msgspec.json.encode(report), indent=2).decode()) + "\n"


CSV_COLUMNS: Final = (
    "by", "name", "region", "clusters", "gpus", "spend_usd", "allocated_usd", "unallocated_usd", "idle_usd", "parked_usd",
    "at_risk_usd", "unbounded", "unbounded_usd", "deny", "warn", "model", "busy_gpus", "under_used_gpus", "parked_gpus",
    "idle_gpus", "doubtful_gpus", "unknown_gpus",
)  # fmt: skip
USES: Final = ("busy", "under_used", "parked", "idle", "doubtful", "unknown")
"""The uses of allocated GPUs, which are fields of their figures."""


def render_csv(report: FleetReport) -> str:
    """Write the figures of clusters, regions, teams, policies and GPUs, a row for each; unknown amounts are empty."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(CSV_COLUMNS)
    for by, rows in groups(report):
        for name, row in rows:
            values = {"by": by, "name": name, "clusters": 1, "region": "", **msgspec.structs.asdict(row)}
            writer.writerow([csv_cell(_number(values.get(column))) for column in CSV_COLUMNS])
    for by, gpus in gpu_groups(report):
        for name, figures in gpus:
            values = {
                "by": "model" if by == "model" else f"{by}-model",
                "name": name,
                "clusters": 1,
                "region": "",
                **msgspec.structs.asdict(figures),
                "gpus": figures.allocated,
                "allocated_usd": figures.usd,
                **{f"{use}_gpus": getattr(figures, use) for use in USES},
            }
            writer.writerow([csv_cell(_number(values.get(column))) for column in CSV_COLUMNS])
    return out.getvalue()


def _number(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    return "" if value is None else value


def groups(report: FleetReport) -> list[tuple[str, list[tuple[str, Figures]]]]:
    """Return the figures by cluster, region, team and policy: each group with the names and figures of its rows."""
    return [
        ("cluster", [(row.cluster, row) for row in report.clusters]),
        ("region", [(row.name, row) for row in report.regions]),
        ("team", [(row.name, row) for row in report.teams]),
        ("policy", [(row.name, row) for row in report.policies]),
    ]


def gpu_groups(report: FleetReport) -> list[tuple[str, list[tuple[str, GpuFigures]]]]:
    """Return the figures of GPUs by model, by team and by cluster: each group with the names and figures of its rows."""
    return [
        ("model", [(row.model, row) for row in report.gpu_models]),
        ("team", [(row.team, row) for row in report.gpu_teams]),
        ("cluster", [(row.cluster, row) for row in report.gpu_clusters]),
    ]


def gpus(number: float) -> str:
    """Return a number of GPUs, of which slices are shares."""
    return f"{number:,.2f}".rstrip("0").rstrip(".")


def idle_or_parked(row: Figures | GpuFigures) -> float | None:
    """Return the cost of idle and parked GPUs; None if their use is unknown."""
    known = [usd for usd in (row.idle_usd, row.parked_usd) if usd is not None]
    return sum(known) if known else None


def unbounded(row: Figures) -> str:
    """Return how many NodePools and autoscalers have no limit."""
    return say.UNKNOWN if row.unbounded is None else f"{row.unbounded:,}"


def when(at: int) -> str:
    """Return a time in seconds since 1970."""
    return f"{dt.datetime.fromtimestamp(at, dt.UTC):%Y-%m-%d %H:%M} UTC"


def amount_of(regression: Regression) -> tuple[str, str]:
    """Return the earlier and the present value of a regression."""
    digits = 2 if "USD" in regression.figure else 1 if "percent" in regression.figure else 0
    return f"{regression.before:,.{digits}f}", f"{regression.now:,.{digits}f}"


def fault_texts(faults: Iterable[Fault]) -> list[str]:
    """Return a sentence for each kind of fault, with the clusters that have it."""
    by_fault: defaultdict[str, list[Fault]] = defaultdict(list)
    for fault in faults:
        by_fault[fault.fault].append(fault)
    return [f"{_names(of_kind)}: {_FAULTS[name](of_kind)}" for name, of_kind in by_fault.items() if name in _FAULTS]


def _names(faults: Sequence[Fault]) -> str:
    names = ", ".join(fault.cluster for fault in faults[:_NAMED])
    return f"{names} and {say.plural(len(faults) - _NAMED, 'more cluster')}" if len(faults) > _NAMED else names


def _runs(faults: Sequence[Fault]) -> str:
    return say.plural(sum(fault.runs for fault in faults), "run")


def _details(faults: Sequence[Fault]) -> str:
    return ", ".join(sorted({fault.detail for fault in faults})[:_NAMED])


_FAULTS: Final[dict[str, Callable[[Sequence[Fault]], str]]] = {
    "schema": lambda faults: (
        f"{_runs(faults)} of a schema that this version does not read ({_details(faults)}), not counted"
    ),
    "future": lambda faults: (
        f"{_runs(faults)} with a time in the future, up to {when(max(int(fault.detail) for fault in faults))}, "
        "not counted: check the clock of the machine that runs the audit, and the one here"
    ),
    "clock": lambda faults: (
        f"{_runs(faults)} by a clock that differs from the API server's by up to "
        f"{max(abs(int(fault.detail)) for fault in faults):,} s: times and days may be wrong"
    ),
    "selection": lambda faults: (
        f"{_runs(faults)} of selected objects or policies only ({_details(faults)}), not counted"
    ),
    "repeated": lambda faults: f"{_runs(faults)} more than one a day: the last run of a day counts",
    "identity": lambda _: (
        "runs of several clusters have this id, or the cluster was created again: give each cluster a name of its own"
    ),
}


def notes(report: FleetReport) -> list[str]:
    """Return what the figures leave out, and why."""
    totals = report.totals
    sentences = [*report.problems[:_MOST_PROBLEMS]]
    if len(report.problems) > _MOST_PROBLEMS:
        more = say.plural(len(report.problems) - _MOST_PROBLEMS, "more file")
        sentences.append(f"{more} could not be read: `problems` of the JSON document lists them")
    sentences += fault_texts(report.faults)
    if totals.without_cost:
        sentences.append(
            f"{say.plural(totals.without_cost, 'cluster')} reported without costs: no amount contains them"
        )
    if totals.coverage is not None and totals.coverage < 1:
        low = min(report.clusters, key=lambda row: row.coverage)
        sentences.append(
            f"the lowest coverage is {say.percent(totals.coverage)}, of {low.cluster}: its counts may be too low"
        )
    return sentences


def render_text(report: FleetReport, top: int, paint: Paint) -> str:
    """Write a report for the terminal, with at most `top` rows of each table; 0 for all."""
    blocks = [
        _head(report, paint),
        *(_table(by, rows, top, paint) for by, rows in groups(report)),
        *(_gpus(by, rows, top, paint) for by, rows in gpu_groups(report)),
        _worst(report, top, paint),
        _regressions(report, top, paint),
        _silent(report, top, paint),
        _versions(report, top, paint),
        _expired(report, top, paint),
        (paint(f"note: {plain(note)}", YELLOW) for note in notes(report)),
    ]
    return "\n".join("".join(f"{line}\n" for line in block) for block in map(list, blocks) if block)


def _usd(amount: float | None) -> str:
    return say.UNKNOWN if amount is None else f"${amount:,.2f}"


def _head(report: FleetReport, paint: Paint) -> Iterator[str]:
    totals = report.totals
    silent = f", {say.plural(len(report.silent), 'cluster')} did not report" if report.silent else ""
    yield paint(f"Fleet of {say.plural(totals.clusters, 'cluster')}{silent}, {report.time:%Y-%m-%d %H:%M} UTC", BOLD)
    yield (
        f"spend {_usd(totals.spend_usd)}/h: allocated {_usd(totals.allocated_usd)}, unallocated {_usd(totals.unallocated_usd)}; "
        f"idle {_usd(totals.idle_usd)}, parked {_usd(totals.parked_usd)}, at risk {_usd(totals.at_risk_usd)}"
    )
    yield (
        f"{say.plural(totals.deny, 'object')} would be denied, {totals.warn:,} would get a warning; "
        f"{unbounded(totals)} unbounded NodePools and autoscalers"
    )


def _more(rows: Sequence[object], top: int) -> Iterator[str]:
    if top and len(rows) > top:
        yield f"and {len(rows) - top:,} more: --top 0"


def _table(by: str, rows: Sequence[tuple[str, Figures]], top: int, paint: Paint) -> Iterator[str]:
    listed = rows[: top or None]
    if not listed:
        return
    header = [f"BY {by.upper()}", *(name.upper() for name in _HEADER)]
    lines = []
    for name, row in listed:
        amounts = (row.spend_usd, row.allocated_usd, idle_or_parked(row), row.at_risk_usd)
        counts = (unbounded(row), f"{row.deny:,}", f"{row.warn:,}")
        lines.append([name or NO_NAME.get(by, ""), *map(_usd, amounts), *counts])
    yield from aligned(header, lines, paint, right=set(range(1, len(header))))
    yield from _more(rows, top)


def _gpus(by: str, rows: Sequence[tuple[str, GpuFigures]], top: int, paint: Paint) -> Iterator[str]:
    if not rows:
        return
    named = ["GPU MODEL"] if by == "model" else [f"GPUS BY {by.upper()}", "MODEL"]
    lines = []
    for name, row in rows[: top or None]:
        model = row.model or NO_NAME["model"]
        names = [model] if by == "model" else [name or NO_NAME.get(by, ""), model]
        lines.append(
            [
                *names,
                gpus(row.allocated),
                *(gpus(getattr(row, use)) for use in USES),
                _usd(row.usd),
                _usd(idle_or_parked(row)),
            ]
        )
    header = [*named, "ALLOCATED", *(use.replace("_", "-").upper() for use in USES), "$/HOUR", "IDLE OR PARKED"]
    yield from aligned(header, lines, paint, right=set(range(len(named), len(header))))
    yield from _more(rows, top)


def _worst(report: FleetReport, top: int, paint: Paint) -> Iterator[str]:
    listed = report.worst[: top or None]
    if listed:
        lines = [
            (_usd(row.loss_usd), f"{row.gpus:g}", row.action, row.cluster, object_name(row), row.policy or say.UNKNOWN)
            for row in listed
        ]
        yield from aligned(
            ("WORST $/HOUR", "GPUS", "ACTION", "CLUSTER", "OBJECT", "POLICY"), lines, paint, right={0, 1}
        )
        yield from _more(report.worst, top)


def object_name(row: Any) -> str:  # Any: a row with kind, namespace and name
    """Return `Kind/namespace/name`."""
    return "/".join(part for part in (row.kind, row.namespace, row.name) if part)


def _regressions(report: FleetReport, top: int, paint: Paint) -> Iterator[str]:
    by_figure: defaultdict[str, list[Regression]] = defaultdict(list)
    for regression in report.regressions:
        by_figure[regression.figure].append(regression)
    for figure, rows in by_figure.items():
        lines = [(row.cluster, *amount_of(row), row.caveat) for row in rows[: top or None]]
        yield from aligned((f"WORSE: {figure.upper()}", "A WEEK AGO", "NOW", ""), lines, paint, right={1, 2})
        yield from _more(rows, top)
    listed = report.policy_regressions[: top or None]
    if listed:
        counts = [(row.policy, f"{row.clusters:,}", f"{row.before:,}", f"{row.now:,}") for row in listed]
        yield from aligned(("WORSE: FINDINGS OF", "CLUSTERS", "A WEEK AGO", "NOW"), counts, paint, right={1, 2, 3})
        yield from _more(report.policy_regressions, top)


def _silent(report: FleetReport, top: int, paint: Paint) -> Iterator[str]:
    if report.silent:
        lines = [(row.cluster, row.region, when(row.at), _usd(row.spend_usd)) for row in report.silent[: top or None]]
        header = ("DID NOT REPORT", "REGION", "LAST RUN", "SPEND THEN")
        yield from aligned(header, lines, paint, right={3}, colours={0: (RED,)})
        yield from _more(report.silent, top)


def _versions(report: FleetReport, top: int, paint: Paint) -> Iterator[str]:
    if len(report.versions) > 1:
        lines = [
            (row.policy_hash, row.gpugate, row.policy_mode, f"{row.clusters:,}", row.example)
            for row in report.versions[: top or None]
        ]
        yield from aligned(("POLICY FILE", "GPUGATE", "MODE", "CLUSTERS", "FIRST OF THEM"), lines, paint, right={3})
        yield from _more(report.versions, top)


def _expired(report: FleetReport, top: int, paint: Paint) -> Iterator[str]:
    if report.expired:
        lines = [
            (str(row.expires), row.policies, row.namespaces, row.owner, f"{row.clusters:,}", row.reason)
            for row in report.expired[: top or None]
        ]
        header = ("EXPIRED EXEMPTION", "POLICIES", "NAMESPACES", "OWNER", "CLUSTERS", "REASON")
        yield from aligned(header, lines, paint, right={4}, colours={5: (DIM,)})
        yield from _more(report.expired, top)
