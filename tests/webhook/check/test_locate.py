from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpugate.webhook.check.locate import Locator
from gpugate.webhook.manifests import documents
from gpugate.webhook.manifests.documents import Document, Positions, read_text
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.schemas.wording import SchemaProblem

if TYPE_CHECKING:
    import pytest

ITEM = "- apiVersion: v1\n  kind: Pod\n  metadata: {{name: p{}}}\n"


class CountedText(str):
    """A text that counts how often it is split."""

    __slots__ = ("splits",)
    splits: int

    def splitlines(self, keepends: bool = False) -> list[str]:  # noqa: FBT001, FBT002 -- as str has it
        self.splits += 1
        return super().splitlines(keepends)


def test_a_document_is_split_and_composed_once_for_all_its_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    text = CountedText("apiVersion: v1\nkind: List\nitems:\n" + "".join(ITEM.format(number) for number in range(50)))
    text.splits = 0
    (read,) = (part for part in read_text("a.yaml", str(text)) if isinstance(part, Document))
    composed: list[str] = []

    def positions(document: Document) -> Positions:
        composed.append(document.source)
        return Positions(replace(document, text=str(document.text)))  # the parser takes no text of another type

    monkeypatch.setattr(documents, "Positions", positions)
    locator, found = Locator({}), [part for part in objects(replace(read, text=text)) if isinstance(part, Manifest)]
    places = [locator.schema_problem(m, SchemaProblem(("metadata", "name"), "is wrong")).location for m in found]

    assert [place.line for place in places] == [6 + 3 * number for number in range(50)]
    assert (text.splits, composed) == (1, ["a.yaml"])
