"""Lists the objects at a path page by page, each once, and holds one page at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import orjson

from gpugate.webhook.cluster.errors import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.webhook.audit.sources.source import Object

# A list that had to begin again so often will never come to its end.
_RESTARTS: Final = 5


class _Metadata(msgspec.Struct, rename="camel"):
    token: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class _Page(msgspec.Struct):
    metadata: _Metadata
    # Raw: an object is decoded when it is looked at, so that no page is ever held decoded.
    items: list[msgspec.Raw] | None = None


class Listing:
    """One list in pages; `left` is how many objects the last page said are to come, None where it did not.

    `told` hears of every page: how many objects it has, and how many are to come.
    """

    def __init__(
        self,
        get: Callable[[str, dict[str, str]], bytes],
        path: str,
        limit: int,
        told: Callable[[int, int | None], None] = lambda _count, _left: None,
    ) -> None:
        self._get = get
        self._path = path
        self._limit = limit
        self._told = told
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
            self._told(len(page.items or ()), self.left)
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
            return msgspec.json.decode(self._get(self._path, parameters), type=_Page)
        except msgspec.DecodeError as error:
            raise UnreachableError(f"{self._path} is no list of an API server: {error}") from None
