from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpugate.webhook.check.baseline import Baseline, BaselineFileError, read_baseline, written
from gpugate.webhook.report.located import BaselineKey

POD = BaselineKey("pods/denied", "", "Pod", "default", "a", "spec.containers[name=b].image")
POOL = BaselineKey("nodepools/x", "karpenter.sh", "NodePool", "", "gpu", 'spec.limits["nvidia.com/gpu"]')
COUNTS = {POD: 2, POOL: 1}
JSON = """\
{
  "schema": "gpugate.dev/baseline/v1",
  "findings": [
    {"policy": "nodepools/x", "group": "karpenter.sh", "kind": "NodePool", "name": "gpu", "path": "spec.limits[\\"nvidia.com/gpu\\"]"},
    {"policy": "pods/denied", "kind": "Pod", "namespace": "default", "name": "a", "path": "spec.containers[name=b].image", "count": 2}
  ]
}
"""


def test_it_is_sorted_with_an_entry_a_line() -> None:
    assert written(Baseline("b.json", COUNTS)) == JSON


@pytest.mark.parametrize("name", ["b.json", "b.yaml", "b.yml"])
@pytest.mark.parametrize("counts", [COUNTS, {}], ids=["entries", "none"])
def test_what_is_written_is_read(name: str, counts: dict[BaselineKey, int], tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(written(Baseline(name, counts)))

    assert read_baseline(file) == Baseline(str(file), counts)


@pytest.mark.parametrize("name", ["b.json", "b.yaml"])
def test_one_more_entry_is_one_more_line(name: str) -> None:
    other = BaselineKey("pods/denied", "", "Pod", "default", "b", "spec")
    before, after = written(Baseline(name, COUNTS)), written(Baseline(name, {**COUNTS, other: 1}))

    assert len(after.splitlines()) == len(before.splitlines()) + 1
    assert all(line in after or f"{line}," in after for line in before.splitlines())


def test_an_entry_that_two_branches_added_counts_once(tmp_path: Path) -> None:
    document = json.loads(JSON)
    document["findings"] *= 2
    file = tmp_path / "b.json"
    file.write_text(json.dumps(document))

    assert read_baseline(file).counts == COUNTS


HEAD = "schema: gpugate.dev/baseline/v1\n"
REFUSED = {
    "another schema": (
        "schema: gpugate.dev/baseline/v2\n",
        "1:9: schema: invalid enum value 'gpugate.dev/baseline/v2'",
    ),
    "no schema": ("findings: []\n", "1:1: missing `schema`, which is required"),
    "an unknown key": (
        f"{HEAD}findings:\n- {{policy: a, kind: b, name: c}}\n- {{policy: a, kind: b, names: c}}\n",
        "4:31: findings[1].names: unknown key; did you mean `name`?",
    ),
    "a count of none": (
        f"{HEAD}findings:\n- {{policy: a, kind: b, name: c, count: 0}}\n",
        "3:40: findings[0].count: expected `int` >= 1",
    ),
    "marks of a merge": (
        f"{HEAD}findings:\n<<<<<<< HEAD\n- a\n",
        "3:1: an unresolved merge conflict: keep the entries of both sides",
    ),
    "cut off": (JSON[: len(JSON) // 2], "4:"),
    "nothing": ("", " holds 0 documents, not one: create a baseline with --write-baseline"),
    "a list": ("- a\n", "1:1: expected `object`, got `array`"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_a_broken_file_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "b.yaml"
    file.write_text(text)

    with pytest.raises(BaselineFileError) as caught:
        read_baseline(file)

    assert str(caught.value).removeprefix(f"{file}:")[: len(message)] == message


def test_a_missing_file_says_how_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(BaselineFileError, match=r"b\.json: no such file: create it with --write-baseline .*b\.json$"):
        read_baseline(tmp_path / "b.json")


def test_what_is_no_regular_file_is_refused() -> None:
    with pytest.raises(BaselineFileError, match=r"^/dev/zero: is not a regular file$"):
        read_baseline(Path("/dev/zero"))
