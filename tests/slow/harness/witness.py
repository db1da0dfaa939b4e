"""Check every replica after each write against the bundles that API servers may know by then."""

from __future__ import annotations

import base64
import functools
import threading
import time
from typing import TYPE_CHECKING, Self

from kept.cluster import MUTATING, SECRETS, VALIDATING

from gpugate.certs.pki import common_name, split

if TYPE_CHECKING:
    from types import TracebackType

    from cluster.fake_api_store import Change, Json
    from harness.fleet import Fleet

_PLURALS = (MUTATING, VALIDATING)
_LOOK_SECONDS = 1.0


class Witness:
    """Checks replicas while its context is open: `looks` is the number of checks, `broken` the violations.

    A bundle counts from its write until `lag` seconds after the next write.
    """

    def __init__(self, fleet: Fleet, lag: float) -> None:
        self.looks = 0
        self.broken: list[str] = []
        self._fleet = fleet
        self._lag = lag
        self._ended = threading.Event()
        self._until: dict[str, float] = {}
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._ended.set()
        with self._fleet.cluster.store.changed:
            self._fleet.cluster.store.changed.notify_all()
        self._thread.join()

    def _watch(self) -> None:
        store = self._fleet.cluster.store
        seen = len(store.history)
        while not self._ended.is_set():
            live = [store.get(plural, "", "gpugate") for plural in _PLURALS]
            news = self._news(seen)
            seen += len(news)
            written = [change for change in news if change.plural in {*_PLURALS, SECRETS}]
            # API servers may use the previous bundle until the longest delay has passed.
            self._count([*live, *(change.object for change in written if change.plural in _PLURALS)])
            if written:
                self._look()

    def _news(self, seen: int) -> list[Change]:
        store = self._fleet.cluster.store
        with store.changed:
            store.changed.wait_for(lambda: self._ended.is_set() or len(store.history) > seen, _LOOK_SECONDS)
            return store.history[seen:]

    def _count(self, configurations: list[Json]) -> None:
        until = time.monotonic() + self._lag
        for configuration in configurations:
            for hook in configuration["webhooks"]:
                self._until[hook["clientConfig"].get("caBundle", "")] = until

    def _look(self) -> None:
        self.looks += 1
        signed = {replica.signed_by() for replica in self._fleet.replicas}
        now = time.monotonic()
        self._until = {bundle: until for bundle, until in self._until.items() if until > now}
        for bundle in self._until:
            if missing := signed - _names(bundle):
                self.broken.append(f"{missing} signed what is served, and is not among {_names(bundle)}")


@functools.lru_cache(64)
def _names(bundle: str) -> frozenset[str]:
    return frozenset(map(common_name, split(base64.b64decode(bundle))))
