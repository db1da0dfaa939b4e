from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpugate.webhook.report import gitlab
from gpugate.webhook.report.located import Located, Location, Report

PROJECT = Path("/builds/platform/clusters")
SEVERITIES = {"info", "minor", "major", "critical", "blocker"}


def entries(report: Report, root: Path = PROJECT) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.json.decode(gitlab.write(report, root, PROJECT))
    return found


def test_a_finding_is_an_entry_with_what_gitlab_requires(denial: Located) -> None:
    (entry,) = entries(Report((denial,)))

    assert entry == {
        "description": "pods/missing-gpu-toleration: is wrong | 100% (Pod/ml/trainer). Fix: write another",
        "check_name": "pods/missing-gpu-toleration",
        "fingerprint": entry["fingerprint"],
        "severity": "critical",
        "location": {"path": "a b/pod.yaml", "lines": {"begin": 3}},
    }
    assert len(entry["fingerprint"]) == 64


def test_nothing_found_is_an_empty_list() -> None:
    assert entries(Report(())) == []


def test_severities_are_gitlabs(report: Report) -> None:
    found = [entry["severity"] for entry in entries(report)]

    assert found == ["minor", "critical", "info", "critical"]
    assert set(found) <= SEVERITIES


def test_no_byte_order_mark(report: Report) -> None:
    assert gitlab.write(report, PROJECT, PROJECT).encode().startswith(b"[")


def test_what_is_of_no_line_stands_on_the_first(denial: Located) -> None:
    (entry,) = entries(Report((replace(denial, location=Location("a.yaml")),)))

    assert entry["location"]["lines"] == {"begin": 1}


def test_findings_that_are_alike_stay_apart(denial: Located) -> None:
    first, second = entries(Report((denial, denial)))

    assert first["fingerprint"] != second["fingerprint"]


def test_a_fingerprint_outlives_moved_lines(denial: Located) -> None:
    moved = replace(denial, location=replace(denial.location, line=30))

    assert entries(Report((denial,)))[0]["fingerprint"] == entries(Report((moved,)))[0]["fingerprint"]


PATHS = {
    "from the top": (PROJECT, "pods/a.yaml", "pods/a.yaml"),
    "from a folder": (PROJECT / "apps", "pods/a.yaml", "apps/pods/a.yaml"),
    "up and over": (PROJECT / "apps", "../base/a.yaml", "base/a.yaml"),
    "a whole path": (PROJECT, "/builds/platform/clusters/a.yaml", "a.yaml"),
    "outside": (PROJECT, "/etc/a.yaml", "/etc/a.yaml"),
    "standard input": (Path("/srv"), "-", "-"),
}


@pytest.mark.parametrize(("root", "given", "shown"), PATHS.values(), ids=PATHS)
def test_a_path_is_relative_to_the_project(root: Path, given: str, shown: str, denial: Located) -> None:
    place = replace(denial.location, file=given)

    assert entries(Report((replace(denial, location=place),)), root)[0]["location"]["path"] == shown


def test_text_of_a_file_cannot_forge_control_characters(denial: Located) -> None:
    (entry,) = entries(Report((replace(denial, message="a\x1b[31m\nb"),)))

    assert "\x1b" not in entry["description"]
    assert "\n" not in entry["description"]
