"""Keeps the objects of one kind as the API server has them: a list, then a watch, as client-go's reflectors do.

What the API server does and means is that of k8s.io/client-go tools/cache/reflector.go and k8s.io/apiserver, v0.36.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from gpugate.webhook.cluster.backoff import Backoff
from gpugate.webhook.cluster.discovery import path_of, resource_name
from gpugate.webhook.cluster.errors import (
    ApiError,
    CallError,
    HistoryChangedError,
    NotServedError,
    UnreachableError,
)
from gpugate.webhook.cluster.events import DELETED, PUT
from gpugate.webhook.cluster.listing import NEWEST, list_all
from gpugate.webhook.cluster.objects import Objects
from gpugate.webhook.cluster.state import Standing
from gpugate.webhook.cluster.watch_call import WatchCall

if TYPE_CHECKING:
    from gpugate.policies.sdk.kinds import Kind
    from gpugate.webhook.cluster.chance import Chance
    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.cluster.events import Event
    from gpugate.webhook.cluster.projection import Projection
    from gpugate.webhook.cluster.reporter import Reporter

# A CRD that is installed later is seen within a minute.
_LOOK_AGAIN_SECONDS: Final = (45.0, 60.0)
_LONGEST_RETRY_AFTER: Final = 300.0
_UNAUTHORIZED: Final = (
    "the API server does not accept our credentials: check the token of the kubeconfig or ServiceAccount"
)


class _Next(Enum):
    DISCOVER = auto()
    LIST = auto()
    WATCH = auto()


class Reflector:
    """One kind: `step` makes one call after another; whoever calls it does the waiting between them.

    What was read stays in force until a new list is complete, whatever happens in between.
    """

    def __init__(
        self, kind: Kind, projection: Projection, connection: Connection, reporter: Reporter, chance: Chance
    ) -> None:
        self.kind = kind
        self.projection = projection
        self.reporter = reporter
        self._connection = connection
        self._chance = chance
        self._backoff = Backoff(chance)
        self._next = _Next.DISCOVER
        self._path = ""
        self._objects = Objects.of(())
        self._revision = NEWEST
        # The resource version we have means nothing to the server any more.
        self._lost = False
        self._watching = WatchCall(connection, chance)

    def step(self) -> float:
        """Look for the kind, list it, or watch it until the watch ends; return how many seconds to wait then."""
        try:
            match self._next:
                case _Next.DISCOVER:
                    self._discover()
                case _Next.LIST:
                    self._list()
                case _Next.WATCH:
                    self._watch()
        except CallError as error:
            return self._failed(error)
        except Exception as error:  # noqa: BLE001 -- a mistake of ours must not leave the facts as they are for good
            return self._failed(CallError(f"reading {resource_name(self.kind)} broke: {type(error).__name__}"))
        return 0.0

    def stop(self) -> None:
        """End a watch that another thread is in, and begin no other."""
        self._watching.stop()

    def _discover(self) -> None:
        self._path = path_of(self._connection, self.kind)
        self._next = _Next.LIST

    def _list(self) -> None:
        oldest = NEWEST if self._lost else self._revision
        found, self._revision = list_all(self._connection, self._path, oldest, self.projection)
        self._objects = Objects.of(found)
        self._lost = False
        self._next = _Next.WATCH
        self.reporter.read(self._objects)

    def _watch(self) -> None:
        parameters = {"resourceVersion": self._revision}
        self._watching.follow(self._path, parameters, self.reporter.watching, self._apply)

    def _apply(self, event: Event) -> None:
        if _older(event.revision, self._revision):
            raise HistoryChangedError("resource versions went back")
        objects = self._objects
        if event.type in PUT:
            objects = objects.put(self.projection(event.object))
        elif event.type == DELETED:
            objects = objects.remove(self.projection(event.object))
        self._revision = event.revision
        if objects is not self._objects:
            self._objects = objects
            self.reporter.read(objects)

    def _failed(self, error: CallError) -> float:
        """Choose the next step, and say when."""
        if isinstance(error, NotServedError):
            self._withhold(Standing.NOT_SERVED, str(error))
            return self._chance.between(_LOOK_AGAIN_SECONDS)
        api = error if isinstance(error, ApiError) else None
        pause = max(self._backoff.next(), min(error.retry_after, _LONGEST_RETRY_AFTER))
        if api and api.code == 403:
            self._withhold(Standing.FORBIDDEN, f"gpugate may not list and watch {resource_name(self.kind)}")
            return pause
        self.reporter.interrupted(_UNAUTHORIZED if api and api.code == 401 else str(error))
        if isinstance(error, HistoryChangedError) or (api and (api.expired or api.from_the_future)):
            # After a watch, a list at least as new as what we have will do; after a list, only the newest.
            listing = self._next is _Next.LIST
            if listing and not self._lost:
                pause = 0.0
            self._lost |= listing or not (api and api.expired)
            self._next = _Next.LIST
        else:
            self._next = self._after(error)
        return pause

    def _after(self, error: CallError) -> _Next:
        if self._next is _Next.DISCOVER or (isinstance(error, ApiError) and error.code == 404):
            return _Next.DISCOVER
        # A watch may go on from where it was; of any other trouble a list is the cure.
        passing = isinstance(error, UnreachableError) or (isinstance(error, ApiError) and error.code == 429)
        return self._next if passing else _Next.LIST

    def _withhold(self, standing: Standing, reason: str) -> None:
        self._next = _Next.DISCOVER
        self._objects = Objects.of(())
        self._revision = NEWEST
        self.reporter.withhold(standing, reason)


def _older(revision: str, than: str) -> bool:
    return revision.isdecimal() and than.isdecimal() and int(revision) < int(than)
