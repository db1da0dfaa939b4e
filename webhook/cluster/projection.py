"""Cuts objects of one kind down to the fields that policies read, and keeps these small."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.kinds import GroupVersionKind
from gpugate.policies.sdk.request import Operation, Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.engine.needs import Needs
    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.kinds import Kind


class StoredField(Field):
    """An object that is kept packed and decoded when it is looked at.

    Decoded, a Deployment takes four times the memory, and 20,000 of them are half a million containers for the garbage
    collector to visit. `decode` remembers what was looked at last. Two are equal when they hold the same.
    """

    __slots__ = ("_decode", "_packed", "name", "namespace")

    def __init__(self, packed: bytes, name: str, namespace: str, decode: Callable[[bytes], Json]) -> None:
        self._key = ""
        self._parent = None
        self._decode = decode
        self._packed = packed
        self.name = name
        self.namespace = namespace

    @property
    def value(self) -> Json:  # type: ignore[override] # an attribute that is computed
        """The object, or what is kept of it."""
        return self._decode(self._packed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredField) and self._packed == other._packed

    def __hash__(self) -> int:
        return hash(self._packed)


class Projection:
    """What is kept of each object of a kind; two are equal when they keep the same."""

    def __init__(self, kind: Kind, needs: Needs, decode: Callable[[bytes], Json] = msgspec.msgpack.decode) -> None:
        # An element of a list says no type; the needs of a kind are the same in all its versions.
        self._type = GroupVersionKind(kind.group, kind.versions[-1], kind.name)
        self._needs = needs
        self._decode = decode

    def __call__(self, obj: dict[str, Json]) -> StoredField:
        """Return the fields of an object that policies read."""
        request = self._needs.project(Request(self._type, Operation.CREATE, obj))
        kept = request.object if request else None
        metadata = Field(kept)["metadata"]
        # A copy, because what the encoder returns has room to spare.
        packed = memoryview(msgspec.msgpack.encode(kept)).tobytes()
        return StoredField(packed, metadata["name"].text, metadata["namespace"].text, self._decode)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Projection) and self._kept == other._kept

    def __hash__(self) -> int:
        return hash(self._type)

    @property
    def _kept(self) -> object:
        return self._type, self._needs.of(self._type)
