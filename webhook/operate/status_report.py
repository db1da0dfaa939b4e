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
    """The counters of one API server for an entry, since it started.

    Attributes:
        calls: the number of calls.
        denied: the number of requests that the webhook denied.
        failed: the number of calls without a valid response; the failurePolicy decided about these requests.
        p99: the 99th percentile of the duration in seconds, rounded up to a bucket of the API server; None without calls.
    """

    calls: int = 0
    denied: int = 0
    failed: int = 0
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A webhook entry of a configuration.

    Attributes:
        configuration: `mutating/NAME` or `validating/NAME`.
        webhook: the name of the entry.
        failure_policy: its failurePolicy.
        timeout: its timeoutSeconds.
        ca_expires: when the last CA of its `caBundle` expires; None without a CA.
        sent: the resources that its rules select.
        off: whether it is disabled.
        counters: None if the metrics of the API server cannot be read.
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
    """A CA of the Secret: its role `active`, `next` or `previous`, and when it expires."""

    role: str
    expires: dt.datetime


@dataclass(frozen=True, slots=True)
class Status:
    """The status of an installation.

    Attributes:
        now: the time.
        entries: the entries of both configurations.
        missing: the configurations that do not exist.
        off: who disabled the webhook, when and why; empty if it is enabled.
        deployments: name, ready replicas and desired replicas.
        leader: the replica that manages the certificates; empty if there is none.
        authorities: the CAs of the certificate Secret.
        mode: the mode of the policy file, and its location; empty if unknown.
        unread: what could not be read, and why.
        incomplete: whether a configuration could not be read.
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
        """0 if the webhook is enabled; 1 if a configuration is missing or disabled; 4 if a configuration was not read."""
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
                    "denied": entry.counters.denied,
                    "failed": entry.counters.failed,
                    "p99_seconds": entry.counters.p99,
                },
            }
            for entry in status.entries
        ],
        "missing": list(status.missing),
        "off": status.off,
        "deployments": [
            {"name": name, "ready": ready, "desired": desired} for name, ready, desired in status.deployments
        ],
        "leader": status.leader,
        "authorities": [{"role": authority.role, "expires": authority.expires} for authority in status.authorities],
        "mode": status.mode,
        "not_read": list(status.unread),
        "exit_code": status.exit_code,
    }
    return plain_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n"


_HEADER: Final = (
    "CONFIGURATION", "WEBHOOK", "FAILURE", "TIMEOUT", "CA EXPIRES", "CALLS", "DENIED", "FAILED", "P99", "RESOURCES",
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
        yield f"{missing} does not exist: the API server does not call gpugate"
    if status.off:
        yield f"OFF {status.off}; to enable it: gpugate webhook enable"
    yield from _parts(status)
    for unread in status.unread:
        yield f"Not read: {unread}"
    if any(entry.counters for entry in status.entries):
        yield "Counters: only the API server that answered, since it started"
    if status.entries and not status.off:
        yield "Break-glass: gpugate webhook disable"


def _parts(status: Status) -> Iterator[str]:
    for name, ready, desired in status.deployments:
        yield f"Deployment {name}: {ready} of {desired} ready"
    if status.leader:
        yield f"Leader: {status.leader}"
    if status.authorities:
        until = (f"{a.role} until {a.expires:%Y-%m-%d} ({_left(a.expires, status.now)})" for a in status.authorities)
        yield f"CAs: {', '.join(until)}"
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
        *((str(n) for n in (counters.calls, counters.denied, counters.failed)) if counters else (_UNKNOWN,) * 3),
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
