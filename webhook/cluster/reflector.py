"""Mirror the objects of one kind from the API server by list and watch, as client-go's reflectors do.

Sources for the behaviour of the API server: k8s.io/client-go tools/cache/reflector.go and k8s.io/apiserver, v0.36.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

import msgspec
import orjson

from gpugate.policies.engine.json_text import read_json
from gpugate.policies.sdk.facts import Unavailable
from gpugate.webhook.cluster.backoff import Backoff
from gpugate.webhook.cluster.discovery import path_of, resource_name
from gpugate.webhook.cluster.errors import (
    ApiError,
    CallError,
    HistoryChangedError,
    NotServedError,
    ShortWatchError,
    UnreachableError,
)
from gpugate.webhook.cluster.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.cluster.backoff import Chance
    from gpugate.webhook.cluster.connection import Connection, Stream
    from gpugate.webhook.cluster.objects import Projection, StoredField

PUT: Final = frozenset({"ADDED", "MODIFIED"})
DELETED: Final = "DELETED"


@dataclass(frozen=True, slots=True)
class Event:
    """A change of one object, or a BOOKMARK, which only contains the current resource version (`revision`)."""

    type: str
    object: dict[str, Any]
    revision: str


def events(stream: Stream) -> Iterator[Event]:
    """Yield the events of a watch.

    Raises:
        ApiError: the server ended the watch with an ERROR event; its object is a Status.
        UnreachableError: the watch failed, or a line is not an event.
    """
    for line in stream.lines():
        try:
            event = read_json(orjson.loads, line)
            type_, obj = event["type"], event["object"]
            revision = "" if type_ == "ERROR" else obj["metadata"]["resourceVersion"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise UnreachableError("a line of the watch is not an event") from None
        if type_ == "ERROR":
            raise ApiError.of(obj)
        yield Event(type_, obj, revision)


# The requested duration of a watch; random, so that the watches do not start again at the same time.
_WATCH_SECONDS: Final = (300.0, 600.0)
# A watch that is silent for this much longer has lost its connection.
_MARGIN_SECONDS: Final = 30.0
_MIN_WATCH: Final = 1.0


class WatchCall:
    """Runs one watch after another, each from `follow` until its end; `stop` ends the watch of another thread."""

    def __init__(self, connection: Connection, chance: Chance) -> None:
        self._connection = connection
        self._chance = chance
        self._stream: Stream | None = None
        self.stopped = False

    def follow(
        self,
        path: str,
        parameters: Mapping[str, str],
        on_open: Callable[[], None],
        on_event: Callable[[Event], None],
        read_timeout: float = float("inf"),
    ) -> None:
        """Watch a path; call `on_open` when the response begins, and `on_event` with each event.

        The watch fails after `read_timeout` seconds without a byte.

        Raises:
            ApiError: the server returned an error, or ended the watch with one.
            UnreachableError: the response is missing, the watch failed or timed out, or a line is not an event.
            ShortWatchError: the watch ended within a second, without an event.
        """
        seconds = self._chance.between(_WATCH_SECONDS)
        longest = seconds + _MARGIN_SECONDS
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            **parameters,
            "timeoutSeconds": str(int(seconds)),
        }
        started, received = self._chance.clock(), False
        with self._connection.stream(path, query, read_timeout=min(longest, read_timeout)) as stream:
            self._stream = stream
            if self.stopped:
                return
            on_open()
            for event in events(stream):
                received = True
                on_event(event)
                if self._chance.clock() - started > longest:
                    break
        self._stream = None
        if not received and self._chance.clock() - started < _MIN_WATCH:
            raise ShortWatchError("the watch ended at once")

    def stop(self) -> None:
        """End the watch of another thread, and start no other."""
        self.stopped = True
        stream = self._stream
        if stream is not None:
            stream.shutdown()


PAGE: Final = 500
# The current objects. client-go begins with "0", the state in the server's cache, which spares etcd when thousands of
# kubelets start. The server ignores the limit then and returns all objects at once, such as 105 MB for 15,000
# ReplicaSets. gpugate has few replicas and requests pages; since Kubernetes 1.34 these come from the cache too.
NEWEST: Final = ""


class _Metadata(msgspec.Struct, rename={"resource_version": "resourceVersion", "token": "continue"}):
    resource_version: str = ""
    token: str = ""


class _Page(msgspec.Struct):
    metadata: _Metadata
    # Raw, because objects that are decoded and reduced one by one need a sixth of the memory.
    items: list[msgspec.Raw] | None = None


_PAGES: Final = msgspec.json.Decoder(_Page)


def list_all(
    connection: Connection, path: str, revision: str, project: Callable[[dict[str, Any]], StoredField]
) -> tuple[list[StoredField], str]:
    """List every object at a path, projected, and return them with the resource version to watch from.

    `revision` is the oldest acceptable resource version, or `NEWEST`. If a page has expired, because the API server
    compacts its history every five minutes, the list starts again, without pages so that it cannot expire again. This is
    what client-go's pager does (k8s.io/client-go tools/pager, v0.36).

    Raises:
        ApiError: the server returned an error.
        UnreachableError: the response is missing, or is not a list.
    """
    try:
        return _list(connection, path, _list_parameters(revision, PAGE), project)
    except _ExpiredPageError:
        return _list(connection, path, _list_parameters(revision, 0), project)


class _ExpiredPageError(Exception):
    pass


def _list_parameters(revision: str, limit: int) -> dict[str, str]:
    parameters = {"limit": str(limit)} if limit else {}
    if revision != NEWEST:
        # With a limit, the default is exactly this version, which may have expired.
        parameters |= {"resourceVersion": revision, "resourceVersionMatch": "NotOlderThan"}
    return parameters


def _list(
    connection: Connection, path: str, parameters: dict[str, str], project: Callable[[dict[str, Any]], StoredField]
) -> tuple[list[StoredField], str]:
    fields: list[StoredField] = []
    while True:
        page = _page(connection, path, parameters)
        fields += [project(orjson.loads(memoryview(item))) for item in page.items or ()]
        if not page.metadata.token:
            return fields, page.metadata.resource_version
        parameters = {"limit": str(PAGE), "continue": page.metadata.token}


def _page(connection: Connection, path: str, parameters: dict[str, str]) -> _Page:
    try:
        return read_json(_PAGES.decode, connection.read(path, parameters))
    except ApiError as error:
        if error.expired and "continue" in parameters:
            raise _ExpiredPageError from None
        raise
    except msgspec.DecodeError as error:
        raise UnreachableError(f"{connection.host}{path} is not a response of an API server: {error}") from None


class KindStatus(Enum):
    """The state of the data of a kind; a closed set, because it is a label of a metric.

    UNREAD: not read yet; policies that need it are not evaluated. SYNCED: read and watched. STALE: read, but the API
    server is unavailable; policies use the last objects. NOT_SERVED and FORBIDDEN: the cluster does not serve the kind, or
    gpugate may not read it; policies that need it are not evaluated.
    """

    UNREAD = "unread"
    SYNCED = "synced"
    STALE = "stale"
    NOT_SERVED = "not_served"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True)
class KindState:
    """The state of one kind.

    Attributes:
        kind: the kind.
        status: the state of its data.
        objects: the number of objects; None if none were read.
        reason: the cause of a problem; empty without one.
    """

    kind: Kind
    status: KindStatus
    objects: int | None = None
    reason: str = ""

    @property
    def served(self) -> bool:
        """Whether the cluster serves the kind; true until discovery denies it."""
        return self.status is not KindStatus.NOT_SERVED

    @property
    def resource(self) -> str:
        """The resource as RBAC names it, such as `nodepools.karpenter.sh`."""
        return resource_name(self.kind)


# The same problem is reported at most once a minute. A short one, such as a restart of the API server, is not reported.
_REPEAT_SECONDS: Final = 60.0
_GRACE_SECONDS: Final = 10.0


class Reporter:
    """Reports one kind, in the reflector's thread: `put` receives its objects, `on_change` its state after a change."""

    def __init__(
        self,
        kind: Kind,
        put: Callable[[Objects | Unavailable], None],
        on_change: Callable[[KindState], None],
        clock: Callable[[], float],
    ) -> None:
        self._put = put
        self._on_change = on_change
        self._clock = clock
        self._state = KindState(kind, KindStatus.UNREAD)
        self._reported_at = float("-inf")
        self._stale_since: float | None = None

    @property
    def state(self) -> KindState:
        """The current state."""
        return self._state

    def age(self) -> float:
        """Return the seconds since the objects were last up to date; 0 while the kind is watched."""
        since = self._stale_since
        return 0.0 if since is None else self._clock() - since

    def read(self, objects: Objects) -> None:
        """Report the objects after a list or a change."""
        self._put(objects)
        self._stale_since = None
        self._report(KindStatus.SYNCED, objects.count)

    def confirm(self) -> None:
        """Report that a watch is open, so the objects are up to date."""
        self._stale_since = None
        self._report(KindStatus.SYNCED, self._state.objects)

    def withdraw(self, status: KindStatus, reason: str) -> None:
        """Remove the objects: the cluster does not serve the kind, or gpugate may not read it."""
        self._put(Unavailable(reason))
        self._mark_stale()
        self._report(status, None, reason)

    def report_failure(self, reason: str) -> None:
        """Report a failed call; if there are objects, only after a grace period."""
        self._mark_stale()
        objects = self._state.objects
        if objects is not None and self.age() < _GRACE_SECONDS:
            return
        withdrawn = self._state.status in {KindStatus.NOT_SERVED, KindStatus.FORBIDDEN}
        pending = self._state.status if withdrawn else KindStatus.UNREAD
        self._report(pending if objects is None else KindStatus.STALE, objects, reason)

    def _mark_stale(self) -> None:
        if self._stale_since is None:
            self._stale_since = self._clock()

    def _report(self, status: KindStatus, objects: int | None, reason: str = "") -> None:
        before, now = self._state, self._clock()
        self._state = KindState(before.kind, status, objects, reason)
        same = (before.status, before.objects) == (status, objects)
        news = not same or (bool(reason) and now - self._reported_at >= _REPEAT_SECONDS)
        if news:
            self._reported_at = now
            self._on_change(self._state)


# A CRD that is installed later is discovered within a minute.
_DISCOVERY_SECONDS: Final = (45.0, 60.0)
_MAX_RETRY_AFTER: Final = 300.0
_UNAUTHORIZED: Final = "the API server rejected the credentials: check the token of the kubeconfig or ServiceAccount"


class _Next(Enum):
    DISCOVER = auto()
    LIST = auto()
    WATCH = auto()


class Reflector:
    """Mirrors one kind: each `step` makes one call, and the caller waits between the steps.

    The objects remain until a new list is complete, even if calls fail meanwhile.
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
        # Whether the server no longer accepts the current resource version.
        self._is_revision_invalid = False
        self._watch_call = WatchCall(connection, chance)

    def step(self) -> float:
        """Discover, list, or watch the kind until the watch ends; return how many seconds to wait before the next step."""
        try:
            match self._next:
                case _Next.DISCOVER:
                    self._discover()
                case _Next.LIST:
                    self._list()
                case _Next.WATCH:
                    self._watch()
        except CallError as error:
            return self._handle_failure(error)
        except Exception as error:  # noqa: BLE001 -- a bug must not stop the updates for ever
            return self._handle_failure(CallError(f"reading {resource_name(self.kind)} failed: {type(error).__name__}"))
        return 0.0

    def stop(self) -> None:
        """End the watch of another thread, and start no other."""
        self._watch_call.stop()

    def _discover(self) -> None:
        self._path = path_of(self._connection, self.kind)
        self._next = _Next.LIST

    def _list(self) -> None:
        oldest = NEWEST if self._is_revision_invalid else self._revision
        fields, self._revision = list_all(self._connection, self._path, oldest, self.projection)
        self._objects = Objects.of(fields)
        self._is_revision_invalid = False
        self._next = _Next.WATCH
        self.reporter.read(self._objects)

    def _watch(self) -> None:
        parameters = {"resourceVersion": self._revision}
        self._watch_call.follow(self._path, parameters, self.reporter.confirm, self._apply)

    def _apply(self, event: Event) -> None:
        if _is_older(event.revision, self._revision):
            raise HistoryChangedError("resource versions decreased")
        objects = self._objects
        if event.type in PUT:
            objects = objects.put(self.projection(event.object))
        elif event.type == DELETED:
            objects = objects.remove(self.projection(event.object))
        self._revision = event.revision
        if objects is not self._objects:
            self._objects = objects
            self.reporter.read(objects)

    def _handle_failure(self, error: CallError) -> float:
        """Choose the next call, and return how many seconds to wait before it."""
        if isinstance(error, NotServedError):
            self._withdraw(KindStatus.NOT_SERVED, str(error))
            return self._chance.between(_DISCOVERY_SECONDS)
        api = error if isinstance(error, ApiError) else None
        pause = max(self._backoff.next(), min(error.retry_after, _MAX_RETRY_AFTER))
        if api and api.code == 403:
            self._withdraw(KindStatus.FORBIDDEN, f"gpugate may not list and watch {resource_name(self.kind)}")
            return pause
        self.reporter.report_failure(_UNAUTHORIZED if api and api.code == 401 else str(error))
        if isinstance(error, HistoryChangedError) or (api and (api.expired or api.is_too_new)):
            # After a watch, a list that is at least as new as the objects suffices. After a list, only the newest does.
            listing = self._next is _Next.LIST
            if listing and not self._is_revision_invalid:
                pause = 0.0
            self._is_revision_invalid |= listing or not (api and api.expired)
            self._next = _Next.LIST
        else:
            self._next = self._choose_after(error)
        return pause

    def _choose_after(self, error: CallError) -> _Next:
        if self._next is _Next.DISCOVER or (isinstance(error, ApiError) and error.code == 404):
            return _Next.DISCOVER
        # After a passing failure a watch continues from its resource version. After any other failure, list again.
        passing = isinstance(error, UnreachableError) or (isinstance(error, ApiError) and error.code == 429)
        return self._next if passing else _Next.LIST

    def _withdraw(self, status: KindStatus, reason: str) -> None:
        self._next = _Next.DISCOVER
        self._objects = Objects.of(())
        self._revision = NEWEST
        self.reporter.withdraw(status, reason)


def _is_older(revision: str, than: str) -> bool:
    return revision.isdecimal() and than.isdecimal() and int(revision) < int(than)
