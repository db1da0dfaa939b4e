"""Replicas that manage their certificates in one cluster, behind a balancer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.processes import wait_until
from harness.published_trust import Published
from kept.cluster import SERVER_NAME, KeptCluster
from kept.replica import Replica

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from harness.running import RunningBalancer


class Fleet:
    """Replicas behind a balancer; `replicas` are ready and endpoints of the balancer when `start` returns."""

    def __init__(
        self, cluster: KeptCluster, balancer: RunningBalancer, folder: Callable[[], Path], closing: ExitStack
    ) -> None:
        self.cluster = cluster
        self.balancer = balancer
        self.replicas: list[Replica] = []
        self._folder = folder
        self._closing = closing

    def start(self, number: int, *flags: str) -> Sequence[Replica]:
        for _ in range(number):
            self.replicas.append(Replica(self.cluster, self._folder(), *flags))
            self._closing.callback(self.replicas[-1].stop)
        for each in self.replicas:
            wait_until(each.ready, "a replica is ready")
            self.balancer.watch(each.address, each.health)
        addresses = {each.address for each in self.replicas}
        wait_until(lambda: set(map(tuple, self.balancer.endpoints())) >= addresses, "all are endpoints")
        return self.replicas

    def published(self, lag: float) -> Published:
        """Return the trust of API servers that read bundles with a delay of up to some seconds, for a load."""
        return Published(self.cluster.api.url, lag, SERVER_NAME)

    def wait_for_promotions(self, number: int, patience: float) -> float:
        """Wait until more authorities have started to sign; return the seconds that it took."""
        before = self.cluster.promotions()
        return wait_until(
            lambda: self.cluster.promotions() >= before + number, f"{number} more promotions", patience, pause=0.1
        )

    def leader(self) -> Replica | None:
        """Return the replica whose keeper holds the Lease."""
        return next((each for each in self.replicas if f"_{each.keeper}_" in self.cluster.leader()), None)
