"""A webhook with several replicas in an in-memory cluster, and the view of its clients."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

from memory_cluster import Leading, Line, MemoryCluster, MemoryRegistration, MemorySecret

from gpugate.certs.authorities import MAX_PREVIOUS, Periods
from gpugate.certs.keeper import Cluster, Keeper
from gpugate.certs.pki import expiry, fingerprint, split

# Short lifetimes, so that a short run covers every transition.
PERIODS = Periods(
    authority=dt.timedelta(hours=90),
    rotation=dt.timedelta(hours=30),
    leaf=dt.timedelta(hours=6),
    propagation=dt.timedelta(minutes=10),
)
NAMES = ("gpugate.gpugate.svc", "gpugate")
LAGS = tuple(dt.timedelta(minutes=minutes) for minutes in (0, 1, 5, 9))


@dataclass
class Fleet:
    """Several replicas, one of which is the leader, and the view of their clients."""

    cluster: MemoryCluster = field(default_factory=MemoryCluster)
    leads: list[Leading] = field(
        default_factory=lambda: [Leading(), Leading(is_leader=False), Leading(is_leader=False)]
    )
    lines: list[Line] = field(default_factory=list)
    keepers: list[Keeper] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cluster.register()
        self.lines = [Line(self.cluster) for _ in self.leads]
        self.keepers = [self._keeper(number) for number in range(len(self.leads))]

    def _keeper(self, number: int) -> Keeper:
        line = self.lines[number]
        parts = Cluster(MemorySecret(self.cluster, line), MemoryRegistration(self.cluster, line), self.leads[number])
        return Keeper(parts, NAMES, PERIODS, self.cluster.now, jitter=lambda: 0.0)

    def restart(self, number: int) -> None:
        self.keepers[number] = self._keeper(number)

    def lead(self, number: int) -> None:
        for other, lead in enumerate(self.leads):
            lead.is_leader = other == number

    def cut_off(self, number: int, **time: float) -> None:
        """Disconnect a replica from the API server for some time."""
        self.lines[number].cut_until = self.cluster.time + dt.timedelta(**time)

    def step(self, number: int) -> None:
        self.keepers[number].step()

    def converge(self) -> None:
        self.cluster.fail = lambda _: None
        for _ in range(2):
            for number in range(len(self.keepers)):
                self.step(number)

    def served(self) -> list[bytes]:
        return [keeper.state.leaf.pair.certificate for keeper in self.keepers if keeper.state.leaf]

    def signed_by(self) -> set[str]:
        return {keeper.state.leaf.authority for keeper in self.keepers if keeper.state.leaf}

    def check(self) -> None:
        """Assert that every client trusts every replica, even with a delayed view, and that no certificate has expired."""
        for lag in LAGS:
            for bundle in self.cluster.bundles_known(self.cluster.time - lag):
                certificates = split(bundle)
                assert len(certificates) <= MAX_PREVIOUS + 2
                trusted = {fingerprint(pem) for pem in certificates}
                assert self.signed_by() <= trusted, f"untrusted by a client that is {lag} behind"
        for certificate in self.served():
            assert self.cluster.time < expiry(certificate)


def started_fleet() -> Fleet:
    fleet = Fleet()
    fleet.converge()
    fleet.cluster.wait(minutes=10)
    fleet.converge()
    fleet.check()
    return fleet
