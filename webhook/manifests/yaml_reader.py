"""Reads one YAML document as kubectl does, within limits.

The values are built from the parser's events and not from composed nodes: depth, node count and aliases are limited
before anything is built (PyYAML's C composer recurses and overruns the stack on 50,000 nested brackets), and it takes
half the time.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from gpugate.webhook.manifests import scalars
from gpugate.webhook.manifests.limits import MAX_ALIASED_NODES, MAX_DEPTH, MAX_NODES
from gpugate.webhook.manifests.problems import ReadError
from gpugate.webhook.manifests.yaml_errors import explain

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

# The C scanner is 6 times as fast; some builds of PyYAML come without it.
Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_LIMITS = "split the file, or write the repeated parts out"


@dataclass(frozen=True, slots=True)
class Note:
    """Something that Kubernetes reads in another way than it looks; line and column count from 1 in the text."""

    message: str
    remedy: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """The value of a document; None when it is empty or null."""

    value: Json
    notes: tuple[Note, ...] = ()


def read(text: str) -> Parsed:
    """Read a text that holds one document, or none.

    Raises:
        ReadError: it is not YAML, is not JSON-like (`.nan`, a list as a key), exceeds a limit, or holds a second
            document.
    """
    loader = None
    try:
        loader = Loader(text)  # the C loader reads the first bytes here, and may refuse them
        builder = _Builder()
        return Parsed(builder.build(loader), tuple(builder.notes))
    except yaml.YAMLError as error:
        raise explain(error, text) from None
    finally:
        if loader is not None:
            loader.dispose()


class _Frame:
    """An object or a list that is not closed yet."""

    __slots__ = ("anchor", "before", "key", "merged", "merging", "value")

    def __init__(self, value: Any, anchor: str | None, before: int) -> None:
        self.value = value
        self.anchor = anchor
        self.before = before  # nodes counted when it was opened
        self.key: str | None = None
        self.merging = False
        self.merged: set[str] | None = None


class _Builder:
    """Builds the value of a document out of events."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Json, int] | _Frame] = {}
        self._flow_from = 0  # how deep the outermost collection in brackets is
        self._nodes = 0
        self._aliased = 0
        self._root: Json = None

    def build(self, loader: Any) -> Json:  # Any: PyYAML's loaders have no common type
        documents = 0
        while True:
            event = loader.get_event()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._scalar(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._open({} if kind is yaml.MappingStartEvent else [], event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._close(event)
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    raise _error(event, "kubectl does not read what follows `...`", "begin each document with ---")
            elif kind is yaml.StreamEndEvent:
                return self._root

    def _scalar(self, event: Any) -> None:
        value: scalars.Scalar = event.value
        frame = self._stack[-1] if self._stack else None
        is_key = frame is not None and frame.key is None and type(frame.value) is dict
        try:
            if is_key and value == "<<" and (event.implicit[0] or event.tag == scalars.MERGE_TAG):
                frame.key, frame.merging = "<<", True  # type: ignore[union-attr] # is_key says there is a frame
                return
            if event.tag is not None:
                value, known = scalars.tagged(event.value, event.tag)
                if not known:
                    self._unknown_tag(event)
            elif event.implicit[0] and (not value or event.value[0] in scalars.HINTS):
                value = scalars.read(event.value)
            if self._flow_from and not event.style and "?" in event.value:
                raise _error(event, "kubectl does not read `?` within brackets", "put the text around it in quotes")
        except scalars.ScalarError as error:
            raise _error(event, str(error), "put it in quotes if it is text") from None
        self._count(event)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._put(value, event)

    def _open(self, value: Json, event: Any) -> None:
        if event.tag is not None and not scalars.is_known(event.tag):
            self._unknown_tag(event)
        if self._stack and self._stack[-1].key is None and type(self._stack[-1].value) is dict:
            raise _error(event, "a key is an object or a list", "write a string")
        if len(self._stack) >= MAX_DEPTH:
            raise _error(event, f"more than {MAX_DEPTH} levels of nesting", "no Kubernetes object is that deep")
        frame = _Frame(value, event.anchor, self._nodes)
        self._stack.append(frame)
        if event.flow_style and not self._flow_from:
            self._flow_from = len(self._stack)
        if event.anchor:
            self._anchors[event.anchor] = frame
        self._count(event)

    def _close(self, event: Any) -> None:
        frame = self._stack.pop()
        if len(self._stack) < self._flow_from:
            self._flow_from = 0
        # Unless an anchor of the same name stands within.
        if frame.anchor and self._anchors[frame.anchor] is frame:
            self._anchors[frame.anchor] = (frame.value, self._nodes - frame.before)
        self._put(frame.value, event)

    def _alias(self, event: Any) -> None:
        found = self._anchors.get(event.anchor)
        if found is None:
            raise _error(event, f"no anchor &{event.anchor} before this alias", "write the value out")
        if isinstance(found, _Frame):
            raise _error(event, f"anchor {event.anchor} contains itself", "write the value out")
        value, nodes = found
        self._aliased += nodes
        self._nodes += nodes
        if self._aliased > MAX_ALIASED_NODES:
            raise _error(event, f"aliases stand for more than {MAX_ALIASED_NODES:,} values", _LIMITS)
        self._put(_copy(value), event)

    def _put(self, value: Any, event: Any) -> None:
        frame = self._stack[-1] if self._stack else None
        if frame is not None and frame.key is None and type(frame.value) is dict:
            frame.key = self._key(value, event)
            if frame.key in frame.value and frame.key not in (frame.merged or ()):
                self.notes.append(_note(event, f"the key {frame.key} occurs twice", "kubectl keeps the last one only"))
            return
        if type(value) is float or type(value) is int:
            value = self._number(value, event)
        if frame is None:
            self._root = value
        elif type(frame.value) is list:
            frame.value.append(value)
        elif frame.merging:
            self._merge(frame, value, event)
            frame.key, frame.merging = None, False
        else:
            frame.value[frame.key] = value
            if frame.merged:
                frame.merged.discard(frame.key)
            frame.key = None

    def _number(self, value: float, event: Any) -> scalars.Scalar:
        try:
            return scalars.in_json(value)
        except scalars.ScalarError as error:
            raise _error(event, str(error), "put it in quotes if it is text") from None

    def _key(self, value: Any, event: Any) -> str:
        if isinstance(value, dict | list):
            raise _error(event, "a key is an object or a list", "write a string")
        try:
            # Thousands of objects have the same few keys.
            return sys.intern(scalars.key(value))
        except scalars.ScalarError as error:
            raise _error(event, str(error), "put it in quotes") from None

    def _merge(self, frame: _Frame, value: Any, event: Any) -> None:
        """Merge in place, so that a merged key wins over an own one that stands before it, as go-yaml v2 does."""
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            raise _error(event, "`<<` merges objects only", "refer to an object, such as <<: *defaults")
        frame.merged = frame.merged or set()
        for part in reversed(parts):
            frame.merged.update(key for key in part if key not in frame.value)
            frame.value.update(part)

    def _count(self, event: Any) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _error(event, f"a document of more than {MAX_NODES:,} values", _LIMITS)

    def _unknown_tag(self, event: Any) -> None:
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        self.notes.append(_note(event, f"the tag {tag} means nothing to Kubernetes", "kubectl reads the bare value"))


def _copy(value: Json) -> Json:
    """An aliased value stands in the object more than once, and each may be changed by itself."""
    if isinstance(value, dict):
        return {key: _copy(member) for key, member in value.items()}
    return [_copy(member) for member in value] if isinstance(value, list) else value


def _error(event: Any, message: str, remedy: str) -> ReadError:
    return ReadError(message, event.start_mark.line + 1, event.start_mark.column + 1, remedy)


def _note(event: Any, message: str, remedy: str) -> Note:
    return Note(message, remedy, event.start_mark.line + 1, event.start_mark.column + 1)
