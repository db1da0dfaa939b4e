"""Creates, replaces and deletes single reports, and counts what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import orjson

from gpugate.webhook.audit.report_objects.bodies import in_place_of, is_ours, same
from gpugate.webhook.audit.report_objects.outcome import Tally
from gpugate.webhook.audit.sources.retrying import retried
from gpugate.webhook.cluster.discovery import resource_name
from gpugate.webhook.cluster.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.audit.report_objects.stored import Key
    from gpugate.webhook.audit.sources.throttle import Throttle
    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.report.report_kinds import ReportKinds

Json = dict[str, Any]  # Any: the JSON edge

FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
# Answers by which somebody else was faster.
_CHANGED: Final = {"create": {409}, "update": {404, 409}}


class Writer:
    """Writes reports of a group; a call that is refused is counted in `tally`, and others go on.

    Where we may not do something, it is not tried again in that namespace.
    """

    def __init__(
        self, connection: Connection, kinds: ReportKinds, throttle: Throttle, tally: Tally | None = None
    ) -> None:
        self.connection = connection
        self.kinds = kinds
        self.throttle = throttle
        self.tally = Tally() if tally is None else tally
        self._forbidden: dict[tuple[str, str], str] = {}
        self._ending: set[str] = set()

    def put(self, key: Key, make: Callable[[Json | None], Json | None], stored: Json | None) -> None:
        """Make a report say what it should; `make` makes it from what is stored, and makes None where none should be.

        Where somebody else wrote meanwhile, what is stored is read and looked at once more.

        Raises:
            CallError: the API server does not answer, or no longer takes us for whom we are.
        """
        try:
            self._put(key, make, stored)
        except _ChangedError:
            try:
                self._put(key, make, self._read(key))
            except _ChangedError as error:
                self.tally.refuse(str(error))

    def delete(self, key: Key) -> None:
        """Delete a report of ours.

        Raises:
            CallError: the API server does not answer, or no longer takes us for whom we are.
        """
        path = self._path(key)
        if self._done("delete", key, lambda: self.connection.delete(path)):
            self.tally.deleted += 1

    def _put(self, key: Key, make: Callable[[Json | None], Json | None], stored: Json | None) -> None:
        kind = self.kinds.of(key.namespace)
        if stored is not None and not is_ours(stored):
            self.tally.refuse(f"{resource_name(kind)} of these names are somebody else's, without our label")
            return
        wanted = make(stored)
        if wanted is None:
            if stored is not None:
                self.delete(key)
        elif stored is None:
            collection = self.kinds.collection(kind, key.namespace)
            if self._done("create", key, lambda: self.connection.create(collection, wanted)):
                self.tally.created += 1
        elif same(stored, wanted):
            self.tally.unchanged += 1
        else:
            path, replacing = self._path(key), in_place_of(stored, wanted)
            if self._done("update", key, lambda: self.connection.replace(path, replacing)):
                self.tally.changed += 1

    def _read(self, key: Key) -> Json | None:
        path = self._path(key)
        try:
            found: Json = orjson.loads(retried(lambda: self.connection.read(path, {}), self.throttle))
        except ApiError as error:
            if error.code == _NOT_FOUND:
                return None
            raise _ChangedError(f"changed meanwhile, and cannot be read: {self._why('get', key, error)}") from None
        return found

    def _done(self, verb: str, key: Key, call: Callable[[], bytes]) -> bool:
        """Call, and tell whether it was done."""
        where = verb, key.namespace
        if verb == "create" and key.namespace in self._ending:
            self.tally.ending += 1
            return False
        if where in self._forbidden:
            self.tally.refuse(self._forbidden[where])
            return False
        try:
            retried(call, self.throttle)
        except ApiError as error:
            if verb == "delete" and error.code == _NOT_FOUND:
                return True
            # Tried often enough; every other report would be as long in coming.
            if error.code in {401, 429} or error.code >= 500:
                raise
            # What the report would be on is about to be gone too.
            if verb == "create" and error.in_ending_namespace:
                self._ending.add(key.namespace)
                self.tally.ending += 1
                return False
            reason = self._why(verb, key, error)
            if error.code in _CHANGED.get(verb, ()):
                raise _ChangedError(f"changed meanwhile: {reason}") from None
            if error.code == FORBIDDEN:
                self._forbidden[where] = reason
            self.tally.refuse(reason)
            return False
        return True

    def _why(self, verb: str, key: Key, error: ApiError) -> str:
        resource = resource_name(self.kinds.of(key.namespace))
        within = f" in namespace {key.namespace}" if key.namespace else ""
        if error.code == FORBIDDEN and f"cannot {verb} resource" in error.message:
            return f"gpugate may not {verb} {resource}{within}: see `gpugate audit --print-rbac`"
        # Without the name, so that what is wrong with many is said once.
        return f"{verb} {resource}{within}: {error}".replace(key.name, "...")

    def _path(self, key: Key) -> str:
        collection = self.kinds.collection(self.kinds.of(key.namespace), key.namespace)
        return f"{collection}/{quote(key.name, safe='')}"


class _ChangedError(Exception):
    """What was to be written is not as it was read."""
