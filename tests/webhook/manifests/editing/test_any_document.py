from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gpugate.webhook.manifests import yaml_reader
from gpugate.webhook.manifests.edit import edited, same
from gpugate.webhook.manifests.edit_tree import EditError, scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORDS = ["a", "name", "nvidia.com/gpu", "on", "8080", "key: x", "1e3", "", " # none", "é\U0001f600", "a\nb"]
scalars = st.sampled_from(WORDS) | st.integers(-5, 5) | st.booleans() | st.none() | st.just(1.5)
keys = st.sampled_from(["a", "b", "nvidia.com/gpu", "y", "8080", "d e", "labels"])
values = st.recursive(
    scalars,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(keys, children, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(keys, values, min_size=1, max_size=4)
COMMENT = re.compile(r"# comment \d+\.")


class Writer:
    """Writes an object as people do, in block and flow style, with comments; `draw` decides."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.comments = 0

    def block(self, value: Any, indent: int) -> list[str]:
        lines: list[str] = []
        for part in value.items() if isinstance(value, dict) else value:
            if self.draw(st.integers(0, 5)) == 0:
                lines.append(self.draw(st.sampled_from(["", " " * indent + self.comment()])))
            lines += self.member(part, indent) if isinstance(value, dict) else self.item(part, indent)
        return lines

    def member(self, part: tuple[str, Any], indent: int) -> list[str]:
        key, value = part
        head = f"{' ' * indent}{scalar(key)}:"
        if self.is_block(value):
            further = self.draw(st.sampled_from([2, 4] if isinstance(value, dict) else [0, 2]))
            return [head + self.trailing(), *self.block(value, indent + further)]
        return self.leaf(head, value, indent)

    def item(self, value: Any, indent: int) -> list[str]:
        if isinstance(value, dict) and self.is_block(value):
            first, *others = self.block(value, indent + 2)
            if first.strip() and not first.lstrip().startswith("#"):
                return [f"{' ' * indent}- {first[indent + 2 :]}", *others]
            return [f"{' ' * indent}-", first, *others]
        return self.leaf(f"{' ' * indent}-", value, indent)

    def leaf(self, head: str, value: Any, indent: int) -> list[str]:
        if isinstance(value, str) and "\n" in value and self.draw(st.booleans()):
            mark = self.draw(st.sampled_from(["|-", f"|- {self.comment()}"]))
            return [f"{head} {mark}", *(" " * (indent + 2) + line for line in value.split("\n"))]
        if value is None and self.draw(st.booleans()):
            return [head + self.trailing()]
        return [f"{head} {self.flow(value)}{self.trailing()}"]

    def is_block(self, value: Any) -> bool:
        return bool(value) and isinstance(value, dict | list) and self.draw(st.integers(0, 3)) > 0

    def flow(self, value: Any) -> str:
        space = self.draw(st.sampled_from(["", " "]))
        if isinstance(value, dict):
            return f"{{{space}{', '.join(f'{scalar(k)}: {self.flow(v)}' for k, v in value.items())}{space}}}"
        return f"[{space}{', '.join(map(self.flow, value))}{space}]" if isinstance(value, list) else scalar(value)

    def trailing(self) -> str:
        return f" {self.comment()}" if self.draw(st.integers(0, 3)) == 0 else ""

    def comment(self) -> str:
        self.comments += 1
        return f"# comment {self.comments}."


@st.composite
def documents(draw: Any) -> tuple[str, dict[str, Any]]:
    """A text, and the object that it means."""
    value, newline = draw(objects), draw(st.sampled_from(["\n", "\r\n"]))
    lines = (["---"] if draw(st.booleans()) else []) + Writer(draw).block(value, 0)
    return newline.join(lines) + draw(st.sampled_from(["", newline])), value


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in parts:
        yield from places(member, (*path, key))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def added(value: dict[str, Any], data: st.DataObject) -> dict[str, Any]:
    """The object with one more member or element somewhere, or with another single value."""
    wanted = copy.deepcopy(value)
    path = data.draw(st.sampled_from(list(places(wanted))))
    there = at(wanted, path)
    if isinstance(there, dict):
        there.setdefault(data.draw(keys), data.draw(values))
    elif isinstance(there, list):
        there.insert(data.draw(st.integers(0, len(there))), data.draw(values))
    else:
        at(wanted, path[:-1])[path[-1]] = data.draw(values)
    return wanted


def removed(value: dict[str, Any], data: st.DataObject) -> dict[str, Any]:
    wanted = copy.deepcopy(value)
    path = data.draw(st.sampled_from([path for path in places(wanted) if path]))
    del at(wanted, path[:-1])[path[-1]]
    return wanted


exhaustive = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@exhaustive
@given(documents(), st.data())
def test_what_is_added_is_read_again_and_no_comment_is_lost(document: Any, data: st.DataObject) -> None:
    text, value = document
    wanted = added(value, data)

    after = edited(text, wanted)

    assert same(yaml_reader.read(after).value, wanted)
    assert sorted(COMMENT.findall(after)) == sorted(COMMENT.findall(text))
    assert edited(after, wanted) == after


@exhaustive
@given(documents(), st.data())
def test_what_is_removed_is_gone_or_nothing_is_done(document: Any, data: st.DataObject) -> None:
    text, value = document
    wanted = removed(value, data)
    assume(wanted)

    try:
        after = edited(text, wanted)
    except EditError as error:
        assert "comment" in str(error)  # noqa: PT017 -- the only reason to refuse
        return
    assert same(yaml_reader.read(after).value, wanted)


@pytest.mark.parametrize("change", [added, removed])
@exhaustive
@given(objects, st.sampled_from([None, 2, "\t"]), st.data())
def test_json_stays_json(change: Any, value: dict[str, Any], indent: Any, data: st.DataObject) -> None:
    wanted = change(value, data)

    after = edited(json.dumps(value, indent=indent, ensure_ascii=False), wanted)

    assert same(json.loads(after), wanted)
