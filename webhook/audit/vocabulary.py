"""The words that gpugate itself may say: those of its own source, which are nobody's secret."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from gpugate.policies.data.instance_types import load_instance_types

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

# A run of what names, paths and keys are made of; signs at its end belong to the sentence.
TOKEN: Final = re.compile(r"[^\W_](?:[\w./:@+*-]*[\w*])?|_[\w./:@+*-]*\w")
_PACKAGES: Final = ("policies", "webhook")


@cache
def vocabulary() -> frozenset[str]:
    """Return every token of our source, and every name of an EC2 instance type, casefolded."""
    words: set[str] = set(map(str.casefold, load_instance_types().names))
    for package in _PACKAGES:
        for source in _sources(files(f"gpugate.{package}")):
            for token in TOKEN.findall(source.casefold()):
                words.update((token, *token.split("/")))
    return frozenset(words)


def _sources(folder: Traversable) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(entry)
        elif entry.name.endswith(".py"):
            yield entry.read_text(encoding="utf-8")
