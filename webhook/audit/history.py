"""The history of audits: the figures of each run, one line of JSON for each, in a directory with a file for each month.

A line is appended with one write, so that a reader sees all of it or nothing. A line that is not a record, because a write was
interrupted or another program wrote it, is named and passed over. Within a version of the format, fields are only added, so that
records of all earlier versions of gpugate are read.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from gpugate import __version__
from gpugate.policies.engine.config import GpugateError
from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.audit import words as say
from gpugate.webhook.audit.model import Action, AuditReport, Summary, Usd
from gpugate.webhook.audit.tally import CLUSTER, grouped, idle_or_parked
from gpugate.webhook.manifests.within import refuse_link

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

SCHEMA: Final = "gpugate.dev/audit-history/v1"
DAYS: Final = 90
"""Older records are not read."""
MOST_GROUPS: Final = 200
"""The namespaces and as many teams with the highest counts and costs are recorded by name; the others share `OTHER`."""
OTHER: Final = "(other)"
NO_TEAM: Final = "(no team)"
MOST_LINE: Final = 1 << 20
MOST_BYTES: Final = 64 << 20
_FILE: Final = re.compile(r"\d{4}-\d{2}\.ndjson")
_MOST_NAMED: Final = 3
_NAME: Final = SCHEMA.rpartition("/")[0]
_LONGEST: Final = 80
_TOLERATED: Final = dt.timedelta(minutes=5)


class Counts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Objects by action, and the cost of GPUs in US dollars per hour, of a policy, a namespace or a team."""

    deny: int = 0
    mutate: int = 0
    warn: int = 0
    record: int = 0
    usd_per_hour: Usd | None = None
    idle_or_parked_usd_per_hour: Annotated[
        float | None, Meta(description="idle and parked GPUs, US dollars per hour; null if the use is unknown")
    ] = None


class Run(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="schema", tag=SCHEMA):
    """The figures of one audit."""

    gpugate: Annotated[str, Meta(description="version of gpugate that wrote the record")]
    time: Annotated[dt.datetime, Meta(tz=True)]
    coverage: Annotated[float, Meta(ge=0, le=1)]
    objects: Summary
    cluster: Annotated[str, Meta(description="name of the cluster; empty for a dump")] = ""
    selection: Annotated[str, Meta(description="the flags that select objects and policies; empty for all")] = ""
    usd_per_hour: Annotated[
        dict[str, float], Meta(description="figure of the report -> US dollars per hour; empty without cost")
    ] = {}
    use_coverage: Annotated[
        float | None, Meta(description="share of the allocated GPUs whose use is known; null without --prometheus")
    ] = None
    policies: dict[str, Counts] = {}
    namespaces: dict[str, Counts] = {}
    teams: dict[str, Counts] = {}
    cluster_id: Annotated[
        str,
        Meta(description="configured name of the cluster, else the UID of `kube-system`; empty if both are unknown"),
    ] = ""
    region: Annotated[str, Meta(description="region from the configuration")] = ""
    labels: Annotated[dict[str, str], Meta(description="labels of the cluster from the configuration")] = {}
    run_id: Annotated[str, Meta(description="id of the run; empty in records of earlier versions of gpugate")] = ""

    def is_of(self, other: Run) -> bool:
        """Tell whether two runs are of one cluster; records of earlier versions have no id."""
        if self.cluster_id and other.cluster_id:
            return self.cluster_id == other.cluster_id
        return self.cluster == other.cluster

    @classmethod
    def of(cls, report: AuditReport, *, cluster: str = "", selection: str = "") -> Run:
        """Return the figures of an audit.

        Args:
            report: the audit.
            cluster: the name of the cluster; empty for a dump, whose files may be named after their date.
            selection: the flags that select objects and policies.
        """
        cost = report.cost
        figures = {"spend": cost.spend, "at risk": cost.at_risk, **dict(say.spend(cost))} if cost else {}
        return cls(
            report.gpugate,
            report.time,
            report.coverage,
            report.summary,
            cluster,
            selection,
            {name: _cents(usd) for name, usd in figures.items()},
            report.usage.coverage if report.usage else None,
            _counted(report, "policy"),
            _largest(_counted(report, "namespace")),
            _largest(_spending(report, "team")),
            report.cluster.id,
            report.cluster.region,
            report.cluster.labels,
            report.run_id,
        )


def _cents(usd: float) -> float:
    return round(usd, 4)


def _counted(report: AuditReport, by: Literal["policy", "namespace"]) -> dict[str, Counts]:
    counted = {} if by == "policy" else _spending(report, by)
    for group in grouped(report, by):
        by_action = {action.value: count for action, count in group.objects.items() if action is not Action.ALLOW}
        if by_action:
            counted[group.name] = msgspec.structs.replace(counted.get(group.name, Counts()), **by_action)
    return counted


def _spending(report: AuditReport, by: Literal["team", "namespace"]) -> dict[str, Counts]:
    by_name: dict[str, Counts] = {}
    for entry in report.cost.spending if report.cost else ():
        if entry.by == by:
            name = entry.name or (NO_TEAM if by == "team" else CLUSTER)
            usd = None if entry.usd_per_hour is None else _cents(entry.usd_per_hour)
            by_name[name] = Counts(
                usd_per_hour=usd, idle_or_parked_usd_per_hour=_cents(idle_or_parked(entry.used)) if entry.used else None
            )
    return by_name


def _largest(groups: dict[str, Counts]) -> dict[str, Counts]:
    """Return the groups with the highest costs and counts by name, and the sum of the others."""
    ordered = sorted(
        groups.items(), key=lambda item: (-(item[1].usd_per_hour or 0), -item[1].deny, -item[1].warn, item[0])
    )
    listed, others = dict(ordered[:MOST_GROUPS]), [counts for _, counts in ordered[MOST_GROUPS:]]
    if others:
        listed[OTHER] = Counts(
            deny=sum(counts.deny for counts in others),
            mutate=sum(counts.mutate for counts in others),
            warn=sum(counts.warn for counts in others),
            record=sum(counts.record for counts in others),
            usd_per_hour=_sum(counts.usd_per_hour for counts in others),
            idle_or_parked_usd_per_hour=_sum(counts.idle_or_parked_usd_per_hour for counts in others),
        )
    return listed


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _cents(sum(known)) if known else None


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a record."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": SCHEMA, **msgspec.json.schema(Run)}


class HistoryError(GpugateError):
    """The directory of a history cannot be read or written."""


class History(NamedTuple):
    """The records of a directory, oldest first, and sentences about the lines that were passed over."""

    runs: tuple[Run, ...]
    problems: tuple[str, ...] = ()


def prepare(directory: Path, now: dt.datetime) -> None:
    """Create the directory if it does not exist, and check that a record can be appended.

    Raises:
        HistoryError: the directory cannot be created or written.
        LinkError: it would be written through a link out of the repository.
    """
    refuse_link(directory, "the history")
    try:
        directory.mkdir(exist_ok=True)
        with _file(directory, now).open("ab"):
            pass
    except OSError as error:
        raise _refused(directory, error) from None


def append(directory: Path, run: Run) -> None:
    """Append a record with one write. An interrupted line of an earlier write is ended first.

    Raises:
        HistoryError: the record cannot be written. What was written of it is removed.
    """
    file = _file(directory, run.time)
    refuse_link(file, "the history")
    line = msgspec.json.encode(run) + b"\n"
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
        try:
            size = os.fstat(descriptor).st_size
            if size:
                os.lseek(descriptor, -1, os.SEEK_END)
                line = line if os.read(descriptor, 1) == b"\n" else b"\n" + line
            if os.write(descriptor, line) != len(line):
                os.ftruncate(descriptor, size)
                raise HistoryError(f"--history {file}: the record was not written completely: check the free space")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _refused(file, error) from None


def read(directory: Path, now: dt.datetime) -> History:
    """Read the records of the last `DAYS` days, the newest `MOST_BYTES` of them.

    Raises:
        HistoryError: the directory or a file in it cannot be read.
    """
    first = now - dt.timedelta(days=DAYS)
    runs: list[Run] = []
    problems: list[str] = []
    left = MOST_BYTES
    try:
        names = sorted((path for path in directory.iterdir() if _FILE.fullmatch(path.name)), reverse=True)
        for file in names:
            if file.stem < f"{first:%Y-%m}":
                break
            size = file.stat().st_size
            if size > left:
                problems.append(f"{file}: only the last {left >> 20} MiB are read: delete older records")
            runs += _records(file, max(size - left, 0), problems)
            left = max(left - size, 0)
    except OSError as error:
        raise _refused(directory, error) from None
    recent = sorted((run for run in runs if first <= run.time), key=lambda run: run.time)
    more = [f"{directory}: {len(problems) - _MOST_NAMED} more lines passed over"] if len(problems) > _MOST_NAMED else []
    later = sum(run.time > now + _TOLERATED for run in recent)
    if later:
        more.append(
            f"{directory}: {later:,} {'record is' if later == 1 else 'records are'} of a later time than now, and in no trend: "
            "check the clocks of the machines that write it"
        )
    return History(tuple(recent), (*problems[:_MOST_NAMED], *more))


def _records(file: Path, start: int, problems: list[str]) -> Iterator[Run]:
    decoder = msgspec.json.Decoder(Run)
    with file.open("rb") as lines:
        if start:
            lines.seek(start)
            lines.readline()
        number = 0
        while line := lines.readline(MOST_LINE):
            number += 1
            end = line
            while len(end) == MOST_LINE and not end.endswith(b"\n"):
                end = lines.readline(MOST_LINE)
            if not line.strip():
                continue
            try:
                yield read_json(decoder.decode, line)
            except (msgspec.DecodeError, UnicodeError):
                location = f"{file}" if start else f"{file}:{number}"
                cause = _cause(line, is_complete=end.endswith(b"\n"))
                problems.append(f"{location}: {cause}: passed over")


class _Document(msgspec.Struct):
    schema: str


def _cause(line: bytes, *, is_complete: bool) -> str:
    """Say why a line is not a record."""
    if not is_complete:
        return f"an incomplete record of an audit in the format {SCHEMA}"
    try:
        schema = read_json(msgspec.json.Decoder(_Document).decode, line).schema
    except (msgspec.DecodeError, UnicodeError):
        schema = ""
    if schema.startswith(_NAME) and schema != SCHEMA and len(schema) < _LONGEST:
        return f"a record in the format {schema}, which gpugate {__version__} does not read; it reads {SCHEMA}"
    return f"not a record of an audit in the format {SCHEMA}"


def _file(directory: Path, time: dt.datetime) -> Path:
    return directory / f"{time.astimezone(dt.UTC):%Y-%m}.ndjson"


def _refused(path: Path, error: OSError) -> HistoryError:
    return HistoryError(f"--history {path}: {(error.strerror or 'cannot be used').lower()}")
