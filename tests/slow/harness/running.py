"""Proxies for the parts of a test that run in separate processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.balancer import Balancer
from harness.load import Load, Plan
from harness.processes import wait_until
from harness.remote import Remote
from harness.stalls import Counts, Stalls

if TYPE_CHECKING:
    from harness.balancer import Address
    from harness.report import Progress, Report
    from harness.stall_kinds import Kind


class RunningLoad(Remote):
    def __init__(self, plan: Plan) -> None:
        super().__init__(Load, plan)

    def progress(self) -> Progress:
        progress: Progress = self.call("progress")
        return progress

    def pass_calls(self, number: int, patience: float = 300) -> None:
        """Wait until more calls have started."""
        until = self.progress().sent + number
        wait_until(lambda: self.progress().sent >= until, f"{until} calls were begun", patience)

    def finish(self) -> Report:
        report: Report = self.call("finish")
        return report


class RunningStalls(Remote):
    """Stalled connections; ready when every connection was tried once."""

    def __init__(
        self, address: Address, kind: Kind, number: int, sources: tuple[str, ...], *, again: bool = True
    ) -> None:
        super().__init__(Stalls, address, kind, number, sources, again)

    def counts(self) -> Counts:
        counts: Counts = self.call("counted")
        return counts


class RunningBalancer(Remote):
    def __init__(self, lag: float) -> None:
        super().__init__(Balancer, lag)
        self.address: Address = self.call("address")

    def watch(self, backend: Address, health: Address) -> None:
        self.call("watch", backend, health)

    def endpoints(self) -> list[Address]:
        endpoints: list[Address] = self.call("endpoints")
        return endpoints
