"""Shows harms, all at once: Karpenter and KEDA, whose decisions take minutes, are waited for by all of them together."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cluster.namespaces import namespace_object

from harms.harm import Harm
from harms.side import WITH, WITHOUT, Side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cluster.api import Api

    from harms.harm import Seen
    from harms.prometheus import Prometheus
    from harms.watched import Watched

_NAMED = "karpenter.sh/nodepool"
_CLEARED_SECONDS = 120.0
# What would make Pods again.
_OWNERS = (
    ("ScaledObject", "keda.sh/v1alpha1"),
    ("Deployment", "apps/v1"),
    ("DaemonSet", "apps/v1"),
    ("Job", "batch/v1"),
)


class Stage:
    """What harms are shown on."""

    def __init__(self, api: Api, watched: Watched, prometheus: Prometheus) -> None:
        self._api = api
        self._watched = watched
        self._prometheus = prometheus
        self._names: Counter[str] = Counter()
        self._namespaces: list[str] = []
        self.shown: dict[str, Future[Seen]] = {}

    @contextmanager
    def showing(self, harms: Sequence[tuple[str, str, Callable[[Harm], None]]]) -> Iterator[None]:
        """Begin to show harms, each a policy, a name of the test and what shows it; in the end leave nothing."""
        with ThreadPoolExecutor(max(1, len(harms))) as threads:
            for policy, test, show in harms:
                self.shown[test] = threads.submit(self._harm(policy, test).run, show)
            try:
                yield
            finally:
                for future in self.shown.values():
                    future.cancel()
                self._watched.interrupt()
        self._clear()

    def _harm(self, policy: str, test: str) -> Harm:
        name = policy.rpartition("/")[2]
        self._names[name] += 1
        several = f"-{self._names[name]}" if self._names[name] > 1 else ""
        without, guarded = (f"{side}{name}{several}" for side in (WITHOUT, WITH))
        self._namespaces += [without, guarded]
        sides = (Side(self._api, self._watched, self._prometheus, each) for each in (without, guarded))
        return Harm(policy, test, *sides)

    def _clear(self) -> None:
        """Delete everything, Pods first: some hold their nodes, which is what was shown.

        Raises:
            TooLateError: a node or a NodeClaim is left.
        """
        for name in self._namespaces:
            for kind, version in _OWNERS:
                self._api.delete_collection(version, kind, name, propagationPolicy="Background")
            self._api.delete_collection("v1", "Pod", name)
            self._api.delete(namespace_object(name))
        for pool in self._watched.of("NodePool"):
            self._api.delete(pool)
        self._watched.resume()
        self._watched.until(self._is_clear, "no node, NodeClaim nor NodePool is left", _CLEARED_SECONDS)

    def _is_clear(self) -> bool:
        nodes = [node for node in self._watched.of("Node") if _NAMED in node["metadata"].get("labels", {})]
        return not nodes and not self._watched.of("NodeClaim") and not self._watched.of("NodePool")
