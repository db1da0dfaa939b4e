"""Immutable snapshots of the objects of one kind, reduced to the fields that policies read."""

from __future__ import annotations

import sys
import zlib
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import msgspec

from gpugate.policies.sdk.facts import Known
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from zlib import _Compress as _Compressor

    from gpugate.policies.engine.ruleset import Needs
    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.objects import Kind


# Objects of one kind repeat keys and most values. With a dictionary of 8 KiB, which is a handful of objects, a Deployment
# or ReplicaSet takes a sixth of its size. Compressing takes 13 us, and reading one that is not cached 11 us instead of 8.
_DICTIONARY_BYTES: Final = 8 * 1024
# Parameters of zlib: no header and a window of 8 KiB, fastest level, and as little memory as that window needs.
_WINDOW_BITS: Final = -13
_LEVEL: Final = 1
_MEMORY_LEVEL: Final = 5


def decode(packed: bytes, dictionary: bytes) -> Json:
    """Decode an object of a `StoredField`."""
    value: Json = msgspec.msgpack.decode(_content(packed, dictionary))
    return value


def _content(packed: bytes, dictionary: bytes) -> bytes:
    return zlib.decompressobj(_WINDOW_BITS, dictionary).decompress(packed) if dictionary else packed


Decode: TypeAlias = "Callable[[bytes, bytes], Json]"


class StoredField(Field):
    """An object that is stored packed and decoded on access.

    A decoded Deployment takes four times the memory, and 20,000 of them contain half a million dicts and lists that the
    garbage collector visits. `decode` caches the objects that were read last. Two objects are equal if their content is.
    """

    __slots__ = ("_decode", "_dictionary", "_packed", "name", "namespace")

    def __init__(self, packed: bytes, dictionary: bytes, name: str, namespace: str, decode: Decode) -> None:
        """Create the field of an object; it is compressed with `dictionary`, and not compressed if that is empty."""
        self._key = ""
        self._parent = None
        self._decode = decode
        self._dictionary = dictionary
        self._packed = packed
        self.name = name
        # There are few namespaces.
        self.namespace = sys.intern(namespace)

    @property
    def value(self) -> Json:  # type: ignore[override] # computed here, an attribute in the base class
        """The decoded object, reduced to its projected fields."""
        return self._decode(self._packed, self._dictionary)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StoredField):
            return False
        if self._dictionary is other._dictionary:
            return self._packed == other._packed
        return _content(self._packed, self._dictionary) == _content(other._packed, other._dictionary)

    def __hash__(self) -> int:
        return hash(_content(self._packed, self._dictionary))


class Projection:
    """The fields to keep of each object of a kind; two projections are equal if they keep the same fields.

    The first objects are the dictionary with which later ones are compressed. Use a projection in one thread.
    """

    def __init__(self, kind: Kind, needs: Needs, decode: Decode = decode) -> None:
        # Elements of a list have no type. Any version works, because the needs of a kind are the same in all of them.
        self._type = GroupVersionKind(kind.group, kind.versions[-1], kind.name)
        self._needs = needs
        self._decode = decode
        self._first = bytearray()
        self._dictionary = b""
        self._compressor: _Compressor | None = None

    def __call__(self, obj: dict[str, Json]) -> StoredField:
        """Reduce an object to the fields that policies read."""
        request = self._needs.project(Request(self._type, Operation.CREATE, obj))
        projected = request.object if request else None
        metadata = Field(projected)["metadata"]
        packed, dictionary = self._pack(msgspec.msgpack.encode(projected))
        return StoredField(packed, dictionary, metadata["name"].text, metadata["namespace"].text, self._decode)

    def _pack(self, content: bytes) -> tuple[bytes, bytes]:
        """Return the packed content and its dictionary, which is empty for the first objects."""
        if self._compressor is None:
            self._first += content
            if len(self._first) >= _DICTIONARY_BYTES:
                self._dictionary = bytes(self._first[-_DICTIONARY_BYTES:])
                self._compressor = zlib.compressobj(
                    _LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY, self._dictionary
                )
                self._first.clear()
            # A copy, because the buffer of the encoder is larger than its content.
            return memoryview(content).tobytes(), b""
        compressor = self._compressor.copy()
        return compressor.compress(content) + compressor.flush(), self._dictionary

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Projection) and self._fields == other._fields

    def __hash__(self) -> int:
        return hash(self._type)

    @property
    def _fields(self) -> object:
        return self._type, self._needs.of(self._type)


_Value = TypeVar("_Value")
_NONE: Final = Known((), complete=True)


class Objects:
    """All objects of a kind by namespace, sorted by name; immutable, so any thread may read it.

    A change creates a new value, which shares the `Known` of every unchanged namespace.
    """

    def __init__(self, namespaces: Mapping[str, Known], count: int) -> None:
        self._namespaces = namespaces
        self.count = count

    @classmethod
    def of(cls, fields: Iterable[StoredField]) -> Objects:
        """Group objects by namespace."""
        namespaces: dict[str, dict[str, Field]] = {}
        for field in fields:
            namespaces.setdefault(field.namespace, {})[field.name] = field
        known = {namespace: _known(_sorted(objects)) for namespace, objects in sorted(namespaces.items())}
        return cls(known, sum(len(objects) for objects in namespaces.values()))

    def list(self, namespace: str | None) -> Known:
        """Return the objects of one namespace, or of all; the same `Known` until one of them changes."""
        return self._all if namespace is None else self._namespaces.get(namespace, _NONE)

    def put(self, field: StoredField) -> Objects:
        """Add an object, or replace the one of the same name; return the new value."""
        namespace, name = field.namespace, field.name
        objects = self._namespaces.get(namespace, _NONE).by_name
        current = objects.get(name)
        if current == field:
            return self  # most updates change only a status, which is not kept
        changed: dict[str, Field] = {**objects, name: field}
        return self._with(
            namespace, changed if current is not None else _sorted(changed), self.count + (current is None)
        )

    def remove(self, field: StoredField) -> Objects:
        """Remove the object of the same name; return the new value."""
        namespace, name = field.namespace, field.name
        objects = self._namespaces.get(namespace, _NONE).by_name
        if name not in objects:
            return self
        return self._with(namespace, {key: current for key, current in objects.items() if key != name}, self.count - 1)

    def _with(self, namespace: str, objects: dict[str, Field], count: int) -> Objects:
        namespaces = {**self._namespaces, namespace: _known(objects)}
        if not objects:
            del namespaces[namespace]
        return Objects(namespaces if namespace in self._namespaces else _sorted(namespaces), count)

    @cached_property
    def _all(self) -> Known:
        if len(self._namespaces) == 1:
            (known,) = self._namespaces.values()
            return known
        return Known(tuple(field for known in self._namespaces.values() for field in known.items), complete=True)


def _known(objects: dict[str, Field]) -> Known:
    known = Known(tuple(objects.values()), complete=True)
    # `by_name` would compute it during a review: 3 ms for 5,000 objects.
    known.__dict__["by_name"] = objects
    return known


def _sorted(mapping: dict[str, _Value]) -> dict[str, _Value]:
    return {key: mapping[key] for key in sorted(mapping)}
