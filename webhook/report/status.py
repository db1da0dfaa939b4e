"""How an installed webhook fares, as it is shown to people and programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime as dt


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
