"""The status of an installation, as text and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.webhook.report.plain import plain, plain_json

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Counters:
    """What one API server has counted for an entry since it started.

    Attributes:
        calls: how often it asked.
        refused: how many requests the webhook refused.
        failed: how many calls got no usable answer; the request was held up or let through, as the failurePolicy says.
        p99: seconds within which 99 of 100 answers came, as exact as the API server's buckets; None without calls.
    """

    calls: int = 0
    refused: int = 0
    failed: int = 0
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A webhook entry of a configuration.

    Attributes:
        configuration: `mutating/NAME` or `validating/NAME`.
        webhook: its name.
        failure_policy: what becomes of a request when nobody answers.
        timeout: seconds that a request waits at most.
        ca_expires: when the last authority of its `caBundle` expires; None where it has none.
        sent: the resources that are sent.
        off: whether it is turned off.
        counters: None where the API server does not tell.
    """

    configuration: str
    webhook: str
    failure_policy: str
    timeout: int
    ca_expires: dt.datetime | None
    sent: tuple[str, ...]
    off: bool = False
    counters: Counters | None = None


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority of the Secret: `active`, `next` or `previous`, and when it expires."""

    role: str
    expires: dt.datetime


@dataclass(frozen=True, slots=True)
class Status:
    """Everything at one moment.

    Attributes:
        now: the time.
        entries: of both configurations.
        missing: configurations that do not exist.
        off: who turned it off, when and why; empty where it is on.
        deployments: name, ready replicas, wanted ones.
        leader: the replica that keeps the certificates; empty where there is none.
        authorities: of the certificate Secret.
        mode: the mode of the policy file, and where it stands; empty where it is not known.
        unread: what could not be looked at, and why.
        incomplete: whether a configuration is among that.
    """

    now: dt.datetime
    entries: tuple[Entry, ...]
    missing: tuple[str, ...] = ()
    off: str = ""
    deployments: tuple[tuple[str, int, int], ...] = ()
    leader: str = ""
    authorities: tuple[Authority, ...] = ()
    mode: str = ""
    unread: tuple[str, ...] = ()
    incomplete: bool = False

    @property
    def exit_code(self) -> int:
        """0 where the API server is to ask; 1 where a configuration is missing or turned off; 4 where nobody knows."""
        if self.missing or any(entry.off for entry in self.entries):
            return 1
        return 4 if self.incomplete else 0


SCHEMA: Final = "gpugate.dev/status/v1"


def write_json(status: Status) -> str:
    """Write a status."""
    document = {
        "schema": SCHEMA,
        "entries": [
            {
                "configuration": entry.configuration,
                "webhook": entry.webhook,
                "failure_policy": entry.failure_policy,
                "timeout_seconds": entry.timeout,
                "ca_expires": entry.ca_expires,
                "sent": list(entry.sent),
                "off": entry.off,
                "counters": entry.counters
                and {
                    "calls": entry.counters.calls,
                    "refused": entry.counters.refused,
                    "failed": entry.counters.failed,
                    "p99_seconds": entry.counters.p99,
                },
            }
            for entry in status.entries
        ],
        "missing": list(status.missing),
        "off": status.off,
        "deployments": [{"name": name, "ready": ready, "wanted": wanted} for name, ready, wanted in status.deployments],
        "leader": status.leader,
        "authorities": [{"role": each.role, "expires": each.expires} for each in status.authorities],
        "mode": status.mode,
        "not_looked_at": list(status.unread),
        "exit_code": status.exit_code,
    }
    return plain_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n"


_HEADER: Final = (
    "CONFIGURATION", "WEBHOOK", "FAILURE", "TIMEOUT", "CA EXPIRES", "CALLS", "REFUSED", "FAILED", "P99", "SENT",
)  # fmt: skip
_UNKNOWN: Final = "-"
_MOST_SENT: Final = 3


def write_text(status: Status) -> str:
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
