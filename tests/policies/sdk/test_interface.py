"""Policies that were written for an earlier release keep working: the public interface loses nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpugate.policies.sdk import PUBLIC, SDK
from gpugate.tools.sdk_page import signatures

RECORDED = Path(__file__).with_name(f"interface_{SDK}.txt").read_text(encoding="utf-8").splitlines()
_SIGNATURE = re.compile(r"(?P<name>[\w.]+)(?:\((?P<arguments>.*)\)|: (?P<members>.*))?")


def parts(line: str) -> tuple[str, list[str]]:
    """Return the name in a line, and its arguments or members."""
    found = _SIGNATURE.fullmatch(line)
    assert found, line
    listed = found["arguments"] or found["members"] or ""
    return found["name"], [part for part in listed.split(", ") if part]


NOW = dict(map(parts, signatures()))


@pytest.mark.parametrize("recorded", RECORDED)
def test_no_name_is_removed_and_no_call_fails(recorded: str) -> None:
    """If this fails, restore the name or the argument. A change that breaks policies needs another SDK number."""
    name, arguments = parts(recorded)
    assert name in NOW
    assert NOW[name][: len(arguments)] == arguments
    # Further arguments must be optional.
    assert all(argument.endswith("=...") for argument in NOW[name][len(arguments) :] if "(" in recorded)


def test_new_names_are_recorded() -> None:
    """If this fails, write the output of `signatures()` to the file: from then on, these names are a promise."""
    assert signatures() == RECORDED


def test_every_module_documents_its_public_names() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "policy-sdk.md").read_text(encoding="utf-8")
    assert [name for names in PUBLIC.values() for name in names if f"`{name}" not in page] == []
