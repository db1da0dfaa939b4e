"""Read a live cluster page by page; every call is a GET, except the one that asks who the user is."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

import msgspec
import orjson

from gpugate.policies.engine.json_text import read_json
from gpugate.policies.sdk.objects import GroupVersionKind
from gpugate.webhook.audit.model import Cluster
from gpugate.webhook.audit.source import NotReadError, Stored
from gpugate.webhook.cluster.backoff import Backoff, Chance
from gpugate.webhook.cluster.discovery import path_of, resource_name, resource_of
from gpugate.webhook.cluster.errors import ApiError, CallError, NotServedError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.audit.model import NotEvaluated
    from gpugate.webhook.audit.source import Object
    from gpugate.webhook.cluster.connection import Connection


class Throttle:
    """Lets `burst` calls through at once and then `qps` a second, counted by a clock that never goes back."""

    def __init__(
        self,
        qps: float,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._qps = qps
        self._burst = float(burst)
        self._clock = clock
        self.sleep = sleep
        self._left = float(burst)
        self._at = clock()

    def wait(self) -> None:
        """Wait until another call may be made."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) * self._qps) - 1
        self._at = now
        if self._left < 0:
            self.sleep(-self._left / self._qps)


# With the waits of `Backoff` a minute or two: a rolling upgrade of an API server is over by then.
TRIES: Final = 6
_LONGEST_RETRY_AFTER: Final = 60.0
_Answer = TypeVar("_Answer")


def retried(
    call: Callable[[], _Answer], throttle: Throttle, chance: Chance | None = None, tries: int = TRIES
) -> _Answer:
    """Return what a call answers; each try keeps to the rate.

    No answer, too many requests and faults of the server are waited out. After a 401 the connection has read its
    credentials again, so that one more try shows whether the token had only expired.

    Raises:
        CallError: what the last try met, or what no other try would change.
    """
    backoff = Backoff(chance or Chance())
    renewed = False
    for left in reversed(range(tries)):
        throttle.wait()
        try:
            return call()
        except CallError as error:
            if isinstance(error, ApiError) and error.code == 401 and not renewed:
                renewed = True
                continue
            if not left or not _passing(error):
                raise
            throttle.sleep(max(backoff.next(), min(error.retry_after, _LONGEST_RETRY_AFTER)))
    raise UnreachableError("the API server repeatedly rejected these credentials")


def _passing(error: CallError) -> bool:
    if isinstance(error, ApiError):
        return error.code == 429 or error.code >= 500
    return isinstance(error, UnreachableError)


# A list that had to begin again so often will never come to its end.
_RESTARTS: Final = 5


class _Metadata(msgspec.Struct, rename="camel"):
    token: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class _Page(msgspec.Struct):
    metadata: _Metadata
    # Raw: an object is decoded when it is looked at, so that no page is ever held decoded.
    items: list[msgspec.Raw] | None = None


_PAGES: Final = msgspec.json.Decoder(_Page)


class Listing:
    """One list in pages; `left` is the number of remaining objects according to the last page, None if it has none.

    `page_read` is called for each page, with the number of its objects and of the remaining ones.
    """

    def __init__(
        self,
        get: Callable[[str, dict[str, str]], bytes],
        path: str,
        limit: int,
        page_read: Callable[[int, int | None], None] = lambda _count, _left: None,
    ) -> None:
        self._get = get
        self._path = path
        self._limit = limit
        self._page_read = page_read
        self._last = b""
        self.left: int | None = None

    def objects(self) -> Iterator[Object]:
        """Yield every object once.

        The API server forgets a page after five minutes at the latest. Its 410 brings a token with which the list goes
        on at the next name, from what is stored now; where it brings none, the list begins again and objects up to the
        last name seen are left out, because names come in their order (`k8s.io/apiserver` pkg/storage/continue.go and
        etcd3/store.go, v0.36). What is renamed, made or deleted meanwhile may be missed, and nothing comes twice.

        Raises:
            ApiError: the server answered with another error.
            UnreachableError: it did not answer, or with something else than a list.
        """
        token = ""
        restarts = 0
        while True:
            try:
                page = self._page(token)
            except ApiError as error:
                restarts += not error.token
                if not (token and error.expired) or restarts > _RESTARTS:
                    raise
                token = error.token
                continue
            following = page.metadata.token
            self.left = page.metadata.remaining_item_count if following else 0
            self._page_read(len(page.items or ()), self.left)
            for item in page.items or ():
                obj = orjson.loads(memoryview(item))
                if self._is_next(obj, check=restarts > 0):
                    yield obj
            token = following
            if not token:
                return

    def _is_next(self, obj: dict[str, Any], *, check: bool) -> bool:
        metadata = obj.get("metadata") or {}
        # The order is that of the keys in etcd: namespace, slash, name.
        key = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}".encode()
        if check and key <= self._last:
            return False
        self._last = key
        return True

    def _page(self, token: str) -> _Page:
        parameters = {"limit": str(self._limit), **({"continue": token} if token else {})}
        try:
            return read_json(_PAGES.decode, self._get(self._path, parameters))
        except msgspec.DecodeError as error:
            raise UnreachableError(f"{self._path} is not a list from an API server: {error}") from None


PAGE: Final = 500
_FIRST_TRIES: Final = 2
ABSENCE: Final = "not served by the cluster"
# Who asks, as everybody may (`k8s.io/api` authentication/v1 SelfSubjectReview, v0.36); nothing is stored.
_WHO: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEW: Final = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    user_info: _User = _User()


class _Review(msgspec.Struct):
    status: _Status = _Status()


class LiveSource:
    """A cluster behind a connection.

    `namespaces` are read one by one if the credentials may not list all namespaces. `page_read` is called for each
    page, with its kind, the number of its objects and of the remaining ones, None if that is unknown.

    Raises:
        CallError: the API server does not answer, or rejects these credentials.
    """

    def __init__(
        self,
        connection: Connection,
        name: str,
        throttle: Throttle,
        *,
        limit: int = PAGE,
        namespaces: Sequence[str] = (),
        page_read: Callable[[Kind, int, int | None], None] = lambda _kind, _count, _left: None,
    ) -> None:
        self._connection = connection
        self._throttle = throttle
        self._limit = limit
        # One that is named twice holds no more objects.
        self._namespaces = tuple(dict.fromkeys(namespaces))
        self._page_read = page_read
        self._paths: dict[Kind, str] = {}
        self._cluster = self._identified(name)

    @property
    def cluster(self) -> Cluster:
        """The cluster, its version and who looks at it."""
        return self._cluster

    @property
    def absence(self) -> str:
        """Why there is nothing of a kind that is absent."""
        return ABSENCE

    def read(self, kind: Kind) -> Iterator[Stored]:
        """Yield the objects of a kind, of all namespaces or, where that is forbidden, of those that were named.

        Raises:
            NotReadError: they cannot be read, or no more of them.
        """
        path = self._path(kind)
        try:
            yield from self._listed(kind, path)
        except NotReadError as refused:
            error = refused.__cause__
            if not (isinstance(error, ApiError) and error.code == 403 and kind.namespaced and self._namespaces):
                raise
            for namespace in self._namespaces:
                yield from self._listed(kind, _within(path, namespace))
            reason = f"only in {', '.join(self._namespaces)}: {refused}"
            raise NotReadError(reason, namespaces=self._namespaces) from None

    def find(self, api_version: str, name: str) -> Kind:
        """Return the kind that an object names as that of its owner.

        Raises:
            NotReadError: the cluster does not serve it, or does not say.
        """
        gvk = GroupVersionKind.of(api_version, name)
        try:
            resource = resource_of(self._connection, gvk)
        except CallError as error:
            raise _not_read(f"{name} of {api_version}", error) from error
        return resource

    def fetch(self, kind: Kind, namespace: str, name: str) -> Stored | None:
        """Return one object of a kind as it is now; None when it is not there.

        Raises:
            NotReadError: it cannot be read.
        """
        path = self._path(kind)
        try:
            obj = self._get(f"{_within(path, namespace) if kind.namespaced else path}/{quote(name, safe='')}", {})
            return Stored(_typed(kind, path), read_json(orjson.loads, obj))
        except ApiError as error:
            if error.code == 404:
                return None
            raise _not_read(resource_name(kind), error) from error
        except (CallError, orjson.JSONDecodeError) as error:
            raise _not_read(resource_name(kind), error) from error

    def trouble(self) -> Sequence[NotEvaluated]:
        """Return nothing: a cluster is read by kinds."""
        return ()

    def _path(self, kind: Kind) -> str:
        if kind not in self._paths:
            try:
                self._paths[kind] = retried(lambda: path_of(self._connection, kind), self._throttle)
            except CallError as error:
                raise _not_read(resource_name(kind), error) from error
        return self._paths[kind]

    def _listed(self, kind: Kind, path: str) -> Iterator[Stored]:
        gvk = _typed(kind, path)
        listing = Listing(self._get, path, self._limit, partial(self._page_read, kind))
        try:
            for obj in listing.objects():
                yield Stored(gvk, obj)
        except (CallError, orjson.JSONDecodeError) as error:
            raise _not_read(resource_name(kind), error, listing.left) from error

    def _get(self, path: str, parameters: dict[str, str]) -> bytes:
        return retried(lambda: self._connection.read(path, parameters), self._throttle)

    def _identified(self, name: str) -> Cluster:
        try:
            # With the wrong cluster, the command must fail soon.
            answer = retried(lambda: self._connection.read("/version", {}), self._throttle, tries=_FIRST_TRIES)
            version = read_json(msgspec.json.Decoder(_Version).decode, answer)
        except ApiError as error:
            if error.code != 403:
                raise
            version = _Version()
        except msgspec.DecodeError:
            raise UnreachableError(f"{self._connection.host} is not an API server") from None
        try:
            who = read_json(msgspec.json.Decoder(_Review).decode, self._connection.create(_WHO, _REVIEW))
        except (CallError, msgspec.DecodeError):
            who = _Review()
        skew = self._connection.clock_skew
        ahead = None if skew is None else round(-skew.total_seconds())
        return Cluster(name, version.git_version, who.status.user_info.username, clock_ahead_seconds=ahead)


def _within(path: str, namespace: str) -> str:
    above, _, plural = path.rpartition("/")
    return f"{above}/namespaces/{quote(namespace, safe='')}/{plural}"


def _typed(kind: Kind, path: str) -> GroupVersionKind:
    return GroupVersionKind(kind.group, path.split("/")[-2], kind.name)


def _not_read(resource: str, error: Exception, left: int | None = None) -> NotReadError:
    if isinstance(error, NotServedError):
        return NotReadError(str(error), absent=True)
    if isinstance(error, ApiError) and error.code == 403:
        return NotReadError(f"these credentials may not list {resource}: see `gpugate audit --print-rbac`")
    if isinstance(error, ApiError) and error.code == 401:
        return NotReadError("the API server no longer accepts these credentials", left=left)
    return NotReadError(str(error), left=left)
