"""Where examples end otherwise at an API server than their header says, and why: the files in `expectations/`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from library.cases import Case

_FOLDER = Path(__file__).parents[1] / "expectations"


def _read(file: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((_FOLDER / file).read_text(encoding="utf-8"))
    return read


# Example -> where and why the API server refuses it.
REFUSED: Mapping[str, str] = _read("refused_by_api_server.yaml")
_CHANGED = _read("other_than_header.yaml")
# Example -> policies of its header that have nothing to find any more.
PRUNED: Mapping[str, list[str]] = _CHANGED["pruned"]
WITHOUT_STATUS: Mapping[str, list[str]] = _CHANGED["without a status"]
_IN_TEMPLATE: Mapping[str, list[str]] = _CHANGED["patched in the Pods, not in the template"]
_NOT_THERE: Mapping[str, list[str]] = _CHANGED["found, as it is known not to exist"]
_ALL_KNOWN: Mapping[str, list[str]] = _CHANGED["not found, as all there is is known"]


def expected(judged: Case) -> frozenset[str]:
    """Return the policies that find or change something in an example when an API server sends it."""
    gone = {
        policy for table in (PRUNED, WITHOUT_STATUS, _IN_TEMPLATE, _ALL_KNOWN) for policy in table.get(judged.name, ())
    }
    return (judged.expected - gone) | set(_NOT_THERE.get(judged.name, ()))
