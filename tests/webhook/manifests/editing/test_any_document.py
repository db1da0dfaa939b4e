from __future__ import annotations

import copy
import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gpugate.webhook.manifests import yaml_reader
from gpugate.webhook.manifests.edit import Put, edited, first_step, same
from gpugate.webhook.manifests.edit_tree import EditError, scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORDS = [
    "a",
    "name",
    "nvidia.com/gpu",
    "on",
    "8080",
    "key: x",
    "1e3",
    "",
    " # none",
    "é\U0001f600",
    "a\nb",
    "a\n\n # b\n",
    " a\nb\n\n",
]
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
    """Writes an object as people do, in block and flow style, with comments; `draw` decides.

    `owners` has for each comment the path of the value that it is about, and `above` those right above their keys.
    """

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.owners: dict[str, tuple[Any, ...]] = {}
        self.above: set[str] = set()

    def block(self, value: Any, indent: int, path: tuple[Any, ...] = (), *, inside: bool = True) -> list[str]:
        lines: list[str] = []
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            if self.draw(st.integers(0, 5)) == 0:
                lines.append(
                    self.draw(st.sampled_from(["", " " * indent + self.leading(path, key, is_first=not lines)]))
                )
            member = self.member if isinstance(value, dict) else self.item
            lines += member(key, part, indent, (*path, key))
        if inside and self.draw(st.integers(0, 5)) == 0:
            lines.append(" " * indent + self.comment(path))
        return lines

    def leading(self, path: tuple[Any, ...], key: Any, *, is_first: bool) -> str:
        written = self.comment((*path, key) if path or not is_first else ())
        self.above |= {written} if path or not is_first else set()
        return written

    def member(self, key: str, value: Any, indent: int, path: tuple[Any, ...]) -> list[str]:
        head = f"{' ' * indent}{scalar(key)}:"
        if self.is_block(value):
            further = self.draw(st.sampled_from([2, 4] if isinstance(value, dict) else [0, 2]))
            return [head + self.trailing(path), *self.block(value, indent + further, path, inside=further > 0)]
        return self.leaf(head, value, indent, path)

    def item(self, _: int, value: Any, indent: int, path: tuple[Any, ...]) -> list[str]:
        if isinstance(value, dict) and self.is_block(value):
            first, *others = self.block(value, indent + 2, path)
            if first.strip() and not first.lstrip().startswith("#"):
                return [f"{' ' * indent}- {first[indent + 2 :]}", *others]
            return [f"{' ' * indent}-", first, *others]
        return self.leaf(f"{' ' * indent}-", value, indent, path)

    def leaf(self, head: str, value: Any, indent: int, path: tuple[Any, ...]) -> list[str]:
        if isinstance(value, str) and "\n" in value and self.draw(st.booleans()):
            chomping = self.draw(st.sampled_from(["", "-", "+"]))
            indicator = "2" if value.startswith(" ") else self.draw(st.sampled_from(["", "2"]))
            header = f"{head} {self.draw(st.sampled_from('|>'))}{indicator}{chomping}{self.trailing(path)}"
            return [
                header,
                *(" " * (indent + 2) + line if line else "" for line in value.removesuffix("\n").split("\n")),
            ]
        if value is None and self.draw(st.booleans()):
            return [head + self.trailing(path)]
        return [f"{head} {self.flow(value)}{self.trailing(path)}"]

    def is_block(self, value: Any) -> bool:
        return bool(value) and isinstance(value, dict | list) and self.draw(st.integers(0, 3)) > 0

    def flow(self, value: Any) -> str:
        space = self.draw(st.sampled_from(["", " "]))
        if isinstance(value, dict):
            return f"{{{space}{', '.join(f'{scalar(k)}: {self.flow(v)}' for k, v in value.items())}{space}}}"
        return f"[{space}{', '.join(map(self.flow, value))}{space}]" if isinstance(value, list) else scalar(value)

    def trailing(self, path: tuple[Any, ...]) -> str:
        return f" {self.comment(path)}" if self.draw(st.integers(0, 3)) == 0 else ""

    def comment(self, owner: tuple[Any, ...]) -> str:
        written = f"# comment {len(self.owners)}."
        self.owners[written] = owner
        return written


@dataclass(frozen=True)
class Written:
    """A text, the object that it means, and what its comments are about."""

    text: str
    value: dict[str, Any]
    owners: dict[str, tuple[Any, ...]]
    above: set[str]


@st.composite
def documents(draw: Any) -> Written:
    value, newline, writer = draw(objects), draw(st.sampled_from(["\n", "\r\n"])), Writer(draw)
    lines = (["---"] if draw(st.booleans()) else []) + writer.block(value, 0)
    text = newline.join(lines) + draw(st.sampled_from(["", newline]))
    # The blank lines and the end of the text around block scalars are part of some.
    read: Any = yaml_reader.read(text).value
    return Written(text, read, writer.owners, writer.above & set(COMMENT.findall(text)))


def lines_lost(before: str, after: str) -> int:
    """How many lines of one text are not in the other one."""
    return (Counter(before.splitlines()) - Counter(after.splitlines())).total()


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


def is_text_replaced(value: dict[str, Any], wanted: dict[str, Any]) -> bool:
    step = first_step(value, wanted)
    if not isinstance(step, Put):
        return False
    there, part = at(value, step.path[:-1]), step.path[-1]
    return isinstance(there[part] if isinstance(there, list) else there.get(part), str)


exhaustive = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@exhaustive
@given(documents(), st.data())
def test_what_is_added_is_read_again_and_no_comment_is_lost(document: Written, data: st.DataObject) -> None:
    wanted = added(document.value, data)

    after = edited(document.text, wanted)

    assert same(yaml_reader.read(after).value, wanted)
    assert sorted(COMMENT.findall(after)) == sorted(COMMENT.findall(document.text))
    assert edited(after, wanted) == after
    # A text that is written on many lines may become one on one line.
    assert is_text_replaced(document.value, wanted) or lines_lost(document.text, after) <= 1


@exhaustive
@given(documents(), st.data())
def test_what_is_removed_takes_its_own_comments_along_or_nothing_is_done(
    document: Written, data: st.DataObject
) -> None:
    wanted = removed(document.value, data)
    assume(wanted)
    step: Any = first_step(document.value, wanted)

    try:
        after = edited(document.text, wanted)
    except EditError as error:
        assert "comment" in str(error)  # noqa: PT017 -- the only reason to refuse
        return
    assert same(yaml_reader.read(after).value, wanted)
    assert lines_lost(after, document.text) <= 1
    own = {comment for comment, owner in document.owners.items() if owner[: len(step.path)] == step.path}
    kept = set(COMMENT.findall(after))
    assert set(COMMENT.findall(document.text)) - kept <= own
    assert not {comment for comment in document.above & kept if document.owners[comment] == step.path}


@pytest.mark.parametrize("change", [added, removed])
@exhaustive
@given(objects, st.sampled_from([None, 2, "\t"]), st.data())
def test_json_stays_json(change: Any, value: dict[str, Any], indent: Any, data: st.DataObject) -> None:
    wanted = change(value, data)

    after = edited(json.dumps(value, indent=indent, ensure_ascii=False), wanted)

    assert same(json.loads(after), wanted)
