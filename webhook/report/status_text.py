"""A status as a table and a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

    from gpugate.webhook.report.status import Entry, Status

_HEADER: Final = (
    "CONFIGURATION", "WEBHOOK", "FAILURE", "TIMEOUT", "CA EXPIRES", "CALLS", "REFUSED", "FAILED", "P99", "SENT",
)  # fmt: skip
_UNKNOWN: Final = "-"
_MOST_SENT: Final = 3


def write(status: Status) -> str:
    """Write a status."""
    return "".join(f"{plain(line)}\n" for line in _lines(status))


def _lines(status: Status) -> Iterator[str]:
    if status.entries:
        yield from _aligned([_HEADER, *(_row(entry, status.now) for entry in status.entries)])
    for missing in status.missing:
        yield f"There is no {missing}: nothing is asked of gpugate by it"
    if status.off:
        yield f"OFF {status.off}; to turn it on: gpugate webhook enable"
    yield from _parts(status)
    for unread in status.unread:
        yield f"Not looked at: {unread}"
    if any(entry.counters for entry in status.entries):
        yield "Calls are those of the API server that answered, since it started"
    if status.entries and not status.off:
        yield "Break-glass: gpugate webhook disable"


def _parts(status: Status) -> Iterator[str]:
    for name, ready, wanted in status.deployments:
        yield f"Deployment {name}: {ready} of {wanted} ready"
    if status.leader:
        yield f"Leader: {status.leader}"
    if status.authorities:
        until = (f"{a.role} until {a.expires:%Y-%m-%d} ({_left(a.expires, status.now)})" for a in status.authorities)
        yield f"Authorities: {', '.join(until)}"
    if status.mode:
        yield f"Mode: {status.mode}"


def _row(entry: Entry, now: dt.datetime) -> tuple[str, ...]:
    counters = entry.counters
    return (
        entry.configuration,
        entry.webhook,
        "off" if entry.off else entry.failure_policy,
        f"{entry.timeout}s",
        _left(entry.ca_expires, now) if entry.ca_expires else _UNKNOWN,
        *((str(n) for n in (counters.calls, counters.refused, counters.failed)) if counters else (_UNKNOWN,) * 3),
        _UNKNOWN if counters is None or counters.p99 is None else f"{counters.p99 * 1000:g} ms",
        _few(entry.sent),
    )


def _few(sent: tuple[str, ...]) -> str:
    more = f" and {len(sent) - _MOST_SENT} more" if len(sent) > _MOST_SENT else ""
    return ", ".join(sent[:_MOST_SENT]) + more


def _left(expires: dt.datetime, now: dt.datetime) -> str:
    left = expires - now
    if left.total_seconds() <= 0:
        return "EXPIRED"
    return f"{left.days}d" if left.days else f"{int(left.total_seconds() // 3600)}h"


def _aligned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
