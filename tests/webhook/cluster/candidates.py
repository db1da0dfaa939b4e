"""Candidates for one Lease with simulated time, a clock for each candidate, and calls that can fail."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import orjson
from cluster.fake_api_store import Resource, StatusError, Store

from gpugate.webhook.cluster.backoff import Chance
from gpugate.webhook.cluster.errors import ApiError, UnreachableError
from gpugate.webhook.cluster.lease import LeaderElection

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.cluster.connection import Connection

LEASES = ("coordination.k8s.io", "leases")
NAMESPACED_NAME = ("guard", "gpugate")
MIDNIGHT = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)


def do_nothing() -> None:
    """Do nothing during a call; the default of `request` and `answer`."""


@dataclass
class World:
    """The true time in seconds, and the stored objects."""

    time: float = 1000.0
    store: Store = field(default_factory=Store)

    def __post_init__(self) -> None:
        self.store.serve(Resource(LEASES[0], ("v1",), "Lease", LEASES[1]))

    def candidate(self, name: str, rate: float = 1.0, now: Callable[[], dt.datetime] | None = None) -> Candidate:
        return Candidate(self, name, rate, now)

    @property
    def lease(self) -> dict[str, Any]:
        return self.store.get(LEASES, *NAMESPACED_NAME)

    def write(self, spec: object, **metadata: object) -> None:
        """Write the Lease as another client."""
        namespace, name = NAMESPACED_NAME
        self.store.put(LEASES, {"metadata": {"namespace": namespace, "name": name, **metadata}, "spec": spec})

    def delete(self) -> None:
        self.store.delete(LEASES, *NAMESPACED_NAME)

    def moment(self) -> dt.datetime:
        return MIDNIGHT + self.time * SECOND


class Candidate:
    """An election with its calls: `request` and `answer` run before and after each; each call uses one of `faults`.

    A fault is the HTTP status of the response, or the lost message: "request" or "answer".
    """

    host = "fake"

    def __init__(self, world: World, name: str, rate: float, now: Callable[[], dt.datetime] | None) -> None:
        self.world = world
        self.faults: list[int | str | None] = []
        self.request = self.answer = do_nothing
        self.retry_after = 0.0
        self.calls: list[str] = []
        chance = Chance(lambda: rate * world.time, lambda: 0.5)
        self.election = LeaderElection(cast("Connection", self), *NAMESPACED_NAME, name, chance, now or world.moment)

    @property
    def is_leader(self) -> bool:
        return self.election.is_leader

    def step(self) -> float:
        return self.election.step()

    def read(self, _path: str, _parameters: object) -> bytes:
        return self._call("read", lambda: self.world.lease)

    def create(self, _path: str, body: dict[str, Any]) -> bytes:
        return self._call("create", lambda: self.world.store.create(LEASES, body))

    def replace(self, _path: str, body: dict[str, Any]) -> bytes:
        return self._call("replace", lambda: self.world.store.update(LEASES, body))

    def _call(self, verb: str, act: Callable[[], dict[str, Any]]) -> bytes:
        self.calls.append(verb)
        self.request()
        fault = self.faults.pop(0) if self.faults else None
        if fault == "request":
            raise UnreachableError("fake: the response timed out")
        if isinstance(fault, int):
            raise ApiError(fault, "Fault", "", self.retry_after)
        try:
            stored = orjson.dumps(act())
        except StatusError as error:
            raise ApiError.of(error.status, error.code) from None
        self.answer()
        if fault == "answer":
            raise UnreachableError("fake: the connection failed")
        return stored
