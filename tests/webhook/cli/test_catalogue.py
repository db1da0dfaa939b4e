"""`gpugate catalogue`, and what check and audit make of its file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import fastjsonschema
import pytest

from gpugate.webhook.config.published_schemas import catalogue_schema
from gpugate.webhook.manifests.catalogue_file import read_catalogue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]
    Write = Callable[..., Path]

A30 = {"nvidia.com/gpu.product": "NVIDIA-A30", "nvidia.com/gpu.count": "4"}


def node(name: str, labels: dict[str, str] | None = None, **capacity: str) -> dict[str, Any]:
    amounts = {"cpu": "64", "memory": "515Gi", **capacity}
    metadata = {"name": name, "labels": {"kubernetes.io/arch": "amd64", **(labels or {})}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"capacity": amounts}}


def gpu_node(name: str) -> dict[str, Any]:
    return node(name, A30, **{"nvidia.com/gpu": "4"})


def dra_slice(name: str) -> dict[str, Any]:
    product = {"productName": {"string": "NVIDIA H200"}}
    devices = [
        {"name": f"gpu-{i}", "attributes": product, "capacity": {"memory": {"value": "141Gi"}}} for i in range(8)
    ]
    spec = {"driver": "gpu.nvidia.com", "nodeName": name, "pool": {"name": name, "generation": 1}, "devices": devices}
    metadata = {"name": f"{name}-gpus"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata, "spec": spec}


def pod(gpus: int, on: str = "") -> dict[str, Any]:
    resources = {"requests": {"cpu": "4", "memory": "16Gi"}, "limits": {"memory": "16Gi", "nvidia.com/gpu": gpus}}
    container = {"name": "llm", "image": "registry.example.com/llm:1.4", "resources": resources}
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists"}
    metadata = {"name": "llm", "namespace": "serving", "labels": {"team": "search", "cost-center": "cc-1"}}
    spec: dict[str, Any] = {"containers": [container], "tolerations": [toleration]}
    if on:
        spec["nodeName"] = on
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.fixture
def written(tmp_path: Path) -> Write:
    def write(name: str, *objects: dict[str, Any]) -> Path:
        file = tmp_path / name
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects]}))
        return file

    return write


def test_the_file_has_a_type_for_each_shape_and_fits_its_schema(gpugate: Run, written: Write, tmp_path: Path) -> None:
    dump = written("dump.json", gpu_node("a"), gpu_node("b"), node("c"), dra_slice("c"))
    prices = tmp_path / "prices.csv"
    prices.write_text("type,usd_per_hour\n4x-nvidia-a30-64cpu-515gib,3.2\n")
    file = tmp_path / "types.json"

    ran = gpugate("catalogue", "--from", dump, "--complete", "--price-table", prices, "-o", file)

    assert ran == (0, "", "")
    document = json.loads(file.read_text())
    fastjsonschema.compile(catalogue_schema())(document)
    types = {entry["name"]: (entry["nodes"], entry.get("usd_per_hour")) for entry in document["types"]}
    assert types == {"4x-nvidia-a30-64cpu-515gib": (2, 3.2), "8x-nvidia-h200-64cpu-515gib": (1, None)}
    assert (document["complete"], document["source"]) == (True, f"3 nodes of {dump}")


def test_yaml_and_json_say_the_same(gpugate: Run, written: Write, tmp_path: Path) -> None:
    dump = written("dump.json", gpu_node("a"), node("n", {"kubernetes.io/arch": "no"}))
    for name in ("types.json", "types.yaml"):
        assert gpugate("catalogue", "--from", dump, "-o", tmp_path / name).code == 0
    assert read_catalogue(tmp_path / "types.json") == read_catalogue(tmp_path / "types.yaml")
    assert gpugate("catalogue", "--from", dump).out == (tmp_path / "types.yaml").read_text()


@pytest.mark.parametrize(
    ("objects", "code", "error"),
    [
        ([], 4, "error: the dump contains no nodes: add the output of `kubectl get nodes -A -o json`\n"),
        (
            [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a\u001b[2J"}}],
            3,
            (
                "warning: node a\N{REPLACEMENT CHARACTER}[2J: status.capacity contains no CPU or no memory, so the node is "
                "left out\nerror: no nodes: add the output of `kubectl get nodes -o json` with --from\n"
            ),
        ),
    ],
    ids=["none dumped", "none with a capacity"],
)
def test_without_nodes_it_says_what_to_add(
    gpugate: Run, written: Write, objects: list[dict[str, Any]], code: int, error: str
) -> None:
    assert gpugate("catalogue", "--from", written("dump.json", *objects)) == (code, "", error)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--from", "nowhere.json"), "--from nowhere.json: no such file or directory"),
        (("--from", "a.json", "--context", "prod"), "--from selects files, --kubeconfig and --context a cluster"),
    ],
)
def test_wrong_usage(gpugate: Run, flags: tuple[str, ...], text: str) -> None:
    ran = gpugate("catalogue", *flags)
    assert (ran.code, text in ran.err) == (2, True), ran.err


def test_check_takes_the_types_of_a_file_and_of_the_project_file(
    gpugate: Run, written: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpugate("catalogue", "--from", written("dump.json", gpu_node("a")), "--complete", "-o", tmp_path / "types.yaml")
    manifest = written("pod.json", pod(8))
    monkeypatch.chdir(tmp_path)
    wanted = "the Pod requests 8 nvidia.com/gpu (maximum of any instance type of the platform: 4)"

    assert gpugate("check", manifest).code == 0
    assert wanted in gpugate("check", "--catalogue", "types.yaml", manifest).out
    (tmp_path / ".gpugate.yaml").write_text("catalogue: types.yaml\n")
    assert wanted in gpugate("check", manifest).out


def test_check_takes_the_types_of_known_nodes_if_the_policy_file_says_so(
    gpugate: Run, written: Write, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "{apiVersion: gpugate.dev/v1, kind: PolicyConfig, platform: {catalogue: {from_nodes: true, complete: true}}}"
    )
    nodes, manifest = written("nodes.json", gpu_node("a")), written("pod.json", pod(8))
    ran = gpugate("check", "-p", policy, "--context-from", nodes, manifest)
    assert "warning[pods/invalid-gpu-quantity]" in ran.out
    assert ran.code == 0


def test_the_audit_adds_up_the_prices_of_own_machines(gpugate: Run, written: Write, tmp_path: Path) -> None:
    dump = written("dump.json", gpu_node("a"), node("c"), dra_slice("c"), pod(3, on="a"))
    types = tmp_path / "types.yaml"
    prices = tmp_path / "prices.csv"
    prices.write_text("type,usd_per_hour\n4x-nvidia-a30-64cpu-515gib,4\n8x-nvidia-h200-64cpu-515gib,16\n")
    gpugate("catalogue", "--from", dump, "--price-table", prices, "-o", types)

    cost = json.loads(gpugate("audit", "--from", dump, "--catalogue", types, "-o", "json").out)["cost"]

    assert (cost["allocated"], cost["idle"]) == (3, 17)
    assert cost["prices"].startswith("the catalogue of the platform for 2 instance types; for the others")
    assert {(pool["instance_type"], pool["gpus"]) for pool in cost["pools"]} == {
        ("4x-nvidia-a30-64cpu-515gib", 4),
        ("8x-nvidia-h200-64cpu-515gib", 8),
    }


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[]", "types.yaml:1:1: the catalogue is not a YAML mapping; start it with `apiVersion: gpugate.dev/v1`"),
        ("kind: InstanceTypes", "types.yaml:1:1: apiVersion: must be gpugate.dev/v1"),
        (
            "apiVersion: gpugate.dev/v1\nkind: InstanceTypes\ntypes:\n- {name: a, capacity: {cpu: x, memory: 1Gi}}\n",
            'types.yaml:4:29: types[0].capacity.cpu: "x" is not a quantity: write a number such as 1 or 16Gi',
        ),
        (
            "apiVersion: gpugate.dev/v1\nkind: InstanceTypes\ntypes:\n- {name: a, cpus: 4}\n",
            "types.yaml:4:19: types[0].cpus: unknown key",
        ),
        ("a: 1\n---\nb: 2\n", "types.yaml: holds 2 documents: write one InstanceTypes"),
        ("a: [", "types.yaml:2:1: not YAML"),
    ],
)
def test_an_invalid_file_is_refused_with_its_line(
    gpugate: Run, written: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, error: str
) -> None:
    manifest = written("pod.json", pod(1))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "types.yaml").write_text(text)
    ran = gpugate("check", "--catalogue", "types.yaml", manifest)
    assert (ran.code, ran.err.startswith(f"error: {error}")) == (2, True), ran.err
