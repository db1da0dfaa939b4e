"""What the API server says of an object that it refuses: which fields."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpugate.policies.sdk.field import render

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cluster.answer import Answer

    from gpugate.policies.sdk.field import Path

# What it says beside the field that blocks, and of numbers out of range, whose field it names in the text only.
_NOWHERE = frozenset({"", "<nil>"})
_UNKNOWN = re.compile(r'unknown field "((?:[^"\\]|\\.)*)"')


def refused(answer: Answer) -> set[str]:
    """Return the fields that an answer names, in one spelling."""
    causes = (answer.body.get("details") or {}).get("causes") or ()
    fields = {str(cause.get("field", "")) for cause in causes} - _NOWHERE
    return {spelt(field) for field in (*fields, *_UNKNOWN.findall(answer.message))}


def told(paths: Iterable[Path]) -> set[str]:
    """Return the fields that we name, in the same spelling."""
    return {spelt(render(path)) for path in paths}


def unnamed(theirs: set[str], ours: set[str]) -> set[str]:
    """Return the fields of theirs that ours lack.

    Of metadata the API server names the labels where we name the label; and below a value of a wrong type, of which both
    speak, it may go on.
    """
    named = ours | {"metadata.labels" for field in ours if field.startswith("metadata.labels.")}
    named |= {"metadata.annotations" for field in ours if field.startswith("metadata.annotations.")}
    return {field for field in theirs - named if not any(field.startswith(f"{each}.") for each in ours)}


def spelt(field: str) -> str:
    """Write a field without quotes and brackets, in which the API server is not of one mind."""
    return re.sub(r"[\[\]\"\\.]+", ".", field).strip(".")
