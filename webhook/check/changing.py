"""The text of a document while its objects are changed, one after the other.

To change a text it is read again several times. So that thousands of objects in one list do not take the square of that,
each is changed in a text that has no other item beside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from gpugate.webhook.check.changes import changed
from gpugate.webhook.manifests.documents import Document, read_text
from gpugate.webhook.manifests.edit_tree import EditError, parse, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpugate.policies.sdk.field import Json
    from gpugate.webhook.manifests.edit_tree import Node
    from gpugate.webhook.manifests.objects import Manifest
    from gpugate.webhook.report.located import Located

_ITEMS: Final = "items"
_DASH: Final = re.compile(r" *-[ \t]+")


class ChangingText:
    """The text of a document, in which some objects are changed, each at most once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._text = document.text
        self._parted: _Parted | None = None
        self._read = False

    def change(self, manifest: Manifest, group: Sequence[Located]) -> bool:
        """Make a change to an object; tell whether the text is another one then.

        Raises:
            EditError: the text cannot be changed safely.
            PatchError: a patch does not fit the object.
        """
        if manifest.prefix and not self._read:
            self._parted, self._read = _parted(self._text), True
        if self._parted is None:
            before = replace(self._document, text=self._text)
            self._text = changed(before, manifest, group)
            return self._text != before.text
        _, index, *inner = manifest.prefix
        if not isinstance(index, int):
            raise EditError("the object is no item of a list")
        before = replace(self._document, text=self._parted.alone(index))
        after = changed(before, replace(manifest, prefix=(_ITEMS, 0, *inner)), group)
        self._parted.put(index, after)
        return after != before.text

    def finished(self) -> str | None:
        """Return the text of the document; None where nothing changed.

        Raises:
            EditError: the items do not mean together what each means by itself.
        """
        text = self._text
        if self._parted and self._parted.changed:
            text = self._parted.whole()
            if not self._parted.means(text, self._parted.changed):
                raise EditError("the text does not come to mean what is wanted")
        return text if text != self._document.text else None


@dataclass(slots=True)
class _Parted:
    """The text of a list: what stands before, between and behind the texts of its items."""

    head: str
    items: list[str]
    between: list[str]
    tail: str
    changed: set[int] = field(default_factory=set)

    def alone(self, index: int) -> str:
        return self.head + self.items[index] + self.tail

    def put(self, index: int, text: str) -> None:
        """Take over an item out of a text that has no other.

        Raises:
            EditError: more than the item was changed.
        """
        if not (text.startswith(self.head) and text.endswith(self.tail)):
            raise EditError("the change reaches beyond the object")
        item = text[len(self.head) : len(text) - len(self.tail)]
        if item != self.items[index]:
            self.items[index] = item
            self.changed.add(index)

    def whole(self) -> str:
        pairs = zip(self.items, self.between, strict=True)
        return self.head + "".join(part for pair in pairs for part in pair) + self.tail

    def means(self, text: str, indices: Iterable[int]) -> bool:
        """Tell whether some items mean in a whole text what they mean by themselves."""
        whole = _value(text)
        items = whole.get(_ITEMS) if isinstance(whole, dict) else None
        if not isinstance(whole, dict) or not isinstance(items, list) or len(items) != len(self.items):
            return False
        return all(_value(self.alone(index)) == {**whole, _ITEMS: [items[index]]} for index in indices)


def _parted(text: str) -> _Parted | None:
    """Part the text of a list; None where an item does not mean the same by itself."""
    try:
        root = parse(text)
    except EditError:
        return None
    lists = [entry.value for entry in root.entries if entry.name == _ITEMS]
    if len(lists) != 1 or len(lists[0].entries) < 2 or any(node.sort == "alias" for node in walk(root)):
        return None
    found = _in_brackets(text, lists[0]) if lists[0].flow else _in_lines(text, root, lists[0])
    return found if found is not None and found.means(text, range(len(found.items))) else None


def _in_brackets(text: str, found: Node) -> _Parted:
    spans = [(entry.value.start, entry.value.end) for entry in found.entries]
    between = [text[end:start] for (_, end), (start, _) in pairwise(spans)]
    items = [text[start:end] for start, end in spans]
    return _Parted(text[: spans[0][0]], items, [*between, ""], text[spans[-1][1] :])


def _in_lines(text: str, root: Node, found: Node) -> _Parted | None:
    """Part a list at the lines with dashes, so that comments behind and below an item stay with it."""
    starts = [text.rfind("\n", 0, entry.start) + 1 for entry in found.entries]
    if not all(_DASH.fullmatch(text, start, e.start) for start, e in zip(starts, found.entries, strict=True)):
        return None
    behind = [entry.start for entry in root.entries if entry.start > starts[-1]]
    end = text.rfind("\n", 0, behind[0]) + 1 if behind else len(text)
    items = [text[start:stop] for start, stop in zip(starts, [*starts[1:], end], strict=True)]
    return _Parted(text[: starts[0]], items, [""] * len(items), text[end:])


def _value(text: str) -> Json:
    return next((part.value for part in read_text("", text) if isinstance(part, Document)), None)
