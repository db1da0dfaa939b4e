from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from audit.memory_source import named, pod

from gpugate.policies.sdk import objects as kinds
from gpugate.webhook.audit.dump import DumpSource
from gpugate.webhook.audit.source import NotReadError

if TYPE_CHECKING:
    from gpugate.policies.sdk.objects import Kind

PODS = [pod("a"), pod("b"), pod("c")]
PLATFORM = Path(__file__).parents[2] / "fixtures" / "dumps" / "ml-platform"


def untyped(obj: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in obj.items() if key not in {"apiVersion", "kind"}}


def as_list(items: list[Any], kind: str = "List", api_version: str = "v1") -> dict[str, Any]:
    return {"apiVersion": api_version, "items": items, "kind": kind, "metadata": {"resourceVersion": ""}}


def names(source: DumpSource, kind: Kind = kinds.POD) -> list[str]:
    return [stored.object["metadata"]["name"] for stored in source.read(kind)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("pods.yaml", yaml.safe_dump(as_list(PODS)), id="kubectl-yaml"),
        pytest.param("pods.json", json.dumps(as_list(PODS)), id="kubectl-json"),
        pytest.param("pods.json", json.dumps(as_list([untyped(p) for p in PODS], "PodList"), indent=4), id="cluster-info-dump"),
        pytest.param("pods.yaml", yaml.safe_dump(as_list([untyped(p) for p in PODS], "PodList")), id="must-gather"),
        pytest.param("pods.yaml", yaml.safe_dump_all(PODS), id="documents"),
        pytest.param("pods.json", "\n".join(json.dumps(p) for p in PODS), id="json-lines"),
        pytest.param("pods.yaml", yaml.safe_dump(as_list(PODS[:2])) + "---\n" + yaml.safe_dump(PODS[2]), id="list-and-document"),
        pytest.param("pods.yaml", yaml.safe_dump(as_list(PODS)).replace("\n", "\r\n"), id="line-ends-of-windows"),
        pytest.param("pods.yaml", yaml.safe_dump(as_list(PODS), default_flow_style=True), id="flow-style"),
    ],
)  # fmt: skip
def test_a_dump_is_read_whatever_its_form(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, newline="")

    source = DumpSource([str(tmp_path / name)])

    assert (names(source), source.trouble()) == (["a", "b", "c"], ())


def test_an_object_that_stands_twice_is_read_once(tmp_path: Path) -> None:
    core = tmp_path / "namespaces" / "team" / "core"
    single = tmp_path / "namespaces" / "team" / "pods" / "a"
    core.mkdir(parents=True)
    single.mkdir(parents=True)
    (core / "pods.yaml").write_text(yaml.safe_dump(as_list([untyped(p) for p in PODS], "PodList")))
    (single / "a.yaml").write_text(yaml.safe_dump(PODS[0]))

    assert names(DumpSource([str(tmp_path)])) == ["a", "b", "c"]


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_a_list_that_says_its_kind_may_be_empty(tmp_path: Path, suffix: str) -> None:
    text = json.dumps(as_list([], "PodDisruptionBudgetList", "policy/v1"))
    file = tmp_path / f"pdb.{suffix}"
    file.write_text(text if suffix == "json" else yaml.safe_dump(json.loads(text)))

    assert list(DumpSource([str(file)]).read(kinds.POD_DISRUPTION_BUDGET)) == []


def test_a_kind_that_every_cluster_has_was_not_asked_for(tmp_path: Path) -> None:
    with pytest.raises(NotReadError, match="kubectl get poddisruptionbudgets -A") as raised:
        list(dump(tmp_path, *PODS).read(kinds.POD_DISRUPTION_BUDGET))

    assert not raised.value.absent


def test_a_kind_that_a_cluster_may_lack_may_be_absent(tmp_path: Path) -> None:
    with pytest.raises(NotReadError, match=r"no nodepools\.karpenter\.sh") as raised:
        list(dump(tmp_path, *PODS).read(kinds.NODE_POOL))

    assert raised.value.absent


def test_of_a_complete_dump_nothing_is_missing(tmp_path: Path) -> None:
    assert list(dump(tmp_path, *PODS, complete=True).read(kinds.NODE_POOL)) == []


@pytest.mark.parametrize(
    ("broken", "where"),
    [
        pytest.param("- apiVersion: v1\n  kind: Pod\n  metadata: {name: b\n", ":9", id="one-item-of-a-list"),
        pytest.param("- 17\n", ":6", id="no-object"),
        pytest.param("- kind: Pod\n  metadata: {name: b}\n", ":6", id="no-api-version"),
    ],
)
def test_a_broken_item_costs_no_other(tmp_path: Path, broken: str, where: str) -> None:
    good = "- apiVersion: v1\n  kind: Pod\n  metadata: {name: %s, namespace: team}\n"
    file = tmp_path / "pods.yaml"
    file.write_text(f"apiVersion: v1\nitems:\n{good % 'a'}{broken}{good % 'c'}kind: List\n")

    source = DumpSource([str(file)])

    assert names(source) == ["a", "c"]
    (trouble,) = source.trouble()
    assert trouble.what == f"{file}{where}"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"{", "not JSON", id="cut-off-json"),
        pytest.param(b"\xff\xfe\x00", "not UTF-8", id="no-text"),
        pytest.param(b"a: b: c", "mapping values", id="no-yaml"),
        pytest.param(b'{"apiVersion":"v1","kind":"List","items":[{"kind":"Pod"}]}', "missing apiVersion", id="item-without-type"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_stated(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "b.json").write_bytes(data)
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all(PODS))

    source = DumpSource([str(tmp_path)])

    assert names(source) == ["a", "b", "c"]
    assert any(reason in each.reason for each in source.trouble())


def test_other_files_of_a_must_gather_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "version.txt").write_text("4.20\n")
    (tmp_path / "timestamp.json").write_text('{"start": "now"}')
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(PODS))

    source = DumpSource([str(tmp_path)])

    assert (names(source), source.trouble()) == (["a", "b", "c"], ())


def test_an_owner_of_a_kind_that_no_policy_is_about_is_found(tmp_path: Path) -> None:
    serving = named("ModelServing", "a", api_version="example.com/v1")
    source = dump(tmp_path, *PODS, serving)

    kind = source.find("example.com/v1", "ModelServing")

    assert names(source, kind) == ["a"]
    assert source.fetch(kind, "team", "other") is None


def test_the_dump_in_the_repository_is_whole() -> None:
    source = DumpSource([str(PLATFORM)])

    assert source.trouble() == ()
    assert len(names(source)) == 29


def dump(folder: Path, *objects: Any, complete: bool = False) -> DumpSource:
    file = folder / "dump.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return DumpSource([str(file)], complete=complete)
