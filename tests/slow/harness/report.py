"""The results of a load."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Lost:
    """A call without a response: the reason, its start and its end (seconds of the monotonic clock)."""

    reason: str
    began: float
    ended: float


@dataclass(slots=True)
class Progress:
    """Counts while a load runs.

    `shed` counts responses that ask for a retry, `told_to_close` those that close their connection. `generations` and
    `certificates` count how often each was seen, in responses and in handshakes.
    """

    sent: int = 0
    answered: int = 0
    in_flight: int = 0
    shed: int = 0
    connections: int = 0
    told_to_close: int = 0
    generations: Counter[str] = field(default_factory=Counter)
    certificates: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Report(Progress):
    """The results of a load; `seconds` of every answered call, `longest_exchange` of one request and its response."""

    lost: list[Lost] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    longest_exchange: float = 0.0

    def percentile(self, share: float) -> float:
        """Return the quantile of the seconds of answered calls; at least one call must have been answered."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def figures(self) -> dict[str, object]:
        """The figures to show."""
        shown: dict[str, object] = {"sent": self.sent, "lost": len(self.lost), "wrong": len(self.wrong)}
        if self.shed:
            shown["shed"] = self.shed
        for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)) if self.seconds else ():
            shown[name] = f"{self.percentile(share) * 1000:.1f}ms"
        return shown

    def faults(self) -> list[str]:
        """Return each kind of loss and of wrong response once, with its count."""
        kinds = Counter([lost.reason for lost in self.lost] + self.wrong)
        return [f"{count} x {kind}" for kind, count in kinds.most_common(20)]
