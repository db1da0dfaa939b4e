"""The two webhook configurations of an installation: read, changed and deleted, each by its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from gpugate.webhook.cluster.errors import ApiError, UnreachableError
from gpugate.webhook.operate.installation import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.cluster.connection import Connection

_Object: TypeAlias = dict[str, Any]  # Any: the JSON edge

_API: Final = "/apis/admissionregistration.k8s.io/v1"
_OURS: Final = ("app.kubernetes.io/name", "gpugate")
# The keeper writes a `caBundle` now and then; more in a row is somebody who fights with us.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Configuration:
    """One of both, which may not exist."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def read(self, connection: Connection) -> _Object | None:
        """Return it as the API server has it now, or None if there is none.

        Raises:
            CallError: it cannot be read.
        """
        try:
            found = orjson.loads(connection.read(self._path, {}))
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            raise UnreachableError(f"{connection.host} is no API server: {self} is no JSON")
        return found

    def change(self, connection: Connection, how: Callable[[_Object], _Object]) -> bool:
        """Write it as `how` makes it from what it is now; returns whether there was anything to change.

        Raises:
            CallError: it cannot be read or written.
        """
        for attempt in range(_TRIES):
            found = self.read(connection)
            wanted = found and how(found)
            if not wanted or wanted == found:
                return False
            try:
                connection.replace(self._path, wanted)
            except ApiError as error:
                # Gone, or written by somebody else since it was read.
                if error.code not in {404, 409} or attempt == _TRIES - 1:
                    raise
            else:
                return True
        return False

    def delete(self, connection: Connection) -> bool:
        """Delete it; returns whether it was there.

        Raises:
            CallError: it cannot be deleted.
        """
        try:
            connection.delete(self._path)
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True

    @property
    def _path(self) -> str:
        return f"{_API}/{self.kind.lower()}s/{self.name}"


def both(name: str) -> tuple[Configuration, Configuration]:
    """Return both configurations of a name: the mutating one, the validating one."""
    mutating, validating = KINDS
    return Configuration(mutating, name), Configuration(validating, name)


def is_ours(found: _Object) -> bool:
    """Tell whether a configuration says that it is of gpugate, as all do that gpugate and its chart make."""
    key, value = _OURS
    return bool((found["metadata"].get("labels") or {}).get(key) == value)
