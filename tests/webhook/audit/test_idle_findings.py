"""Idle GPUs as findings of a policy, and its exemptions, on the dump of a platform and recorded metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from recorded_metrics import recorded_metrics

from gpugate.webhook.audit import command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLATFORM = Path(__file__).parents[2] / "fixtures" / "dumps" / "ml-platform"
ID = "monitoring/idle-gpu"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with recorded_metrics() as url:
        yield url


@pytest.fixture
def audit(server: str, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def run(policy: str = "", *arguments: str, measured: bool = True) -> dict[str, Any]:
        output, file = tmp_path / "audit.json", tmp_path / "policy.yaml"
        file.write_text(f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n{policy}", encoding="utf-8")
        options = ["--prometheus", server] if measured else []
        given = ["--from", str(PLATFORM), "--policy-file", str(file), *options, "-o", f"json={output}", *arguments]
        assert command.main(given) == 0
        document: dict[str, Any] = json.loads(output.read_bytes())
        return document

    return run


def findings(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        owner["object"]["name"]: finding
        for owner in report["objects"]
        for finding in owner["findings"]
        if finding["policy"] == ID
    }


def exemption(**fields: list[str]) -> str:
    entry = {"policies": [ID], "reason": "hot standby", "owner": "search", "expires": "2099-12-31", **fields}
    return f"exemptions: [{json.dumps(entry)}]\n"


def test_each_owner_with_idle_or_parked_gpus_has_a_finding(audit: Callable[..., dict[str, Any]]) -> None:
    report = audit()
    waste = {
        owner["object"]["name"]
        for owner in report["objects"]
        if {part["use"] for part in owner.get("gpu_use", {"used": []})["used"]} & {"idle", "parked"}
    }

    found = findings(report)
    assert found.keys() == waste != set()
    assert {(finding["mode"], finding["action"]) for finding in found.values()} == {("audit", "record")}
    assert found["notebook"]["message"].startswith("its GPUs did not work (1 of 1 GPU for 24 h: engine active at most ")
    assert found["notebook"]["dependent"]["name"] == "notebook-0"
    assert [pod["name"] for pod in found["notebook"]["related"]] == ["notebook-1"]
    assert report["summary"]["deny"] == 8


def test_an_exemption_is_noted_and_used(audit: Callable[..., dict[str, Any]]) -> None:
    report = audit(exemption(names="notebook-*").replace('"notebook-*"', '["notebook-*"]'))

    found = findings(report)
    assert found["notebook"]["note"] == "exempt until 2099-12-31: hot standby"
    assert not found["llm-chat"]["note"]
    assert not [text for text in report["unused"] if "hot standby" in text]


@pytest.mark.parametrize("measured", [True, False])
def test_an_exemption_is_unused_only_if_the_use_was_measured(
    *, measured: bool, audit: Callable[..., dict[str, Any]]
) -> None:
    report = audit(exemption(names=["nothing"]), measured=measured)

    assert any("hot standby" in text for text in report["unused"]) is measured


@pytest.mark.parametrize(
    ("policy", "arguments"),
    [
        pytest.param(f"policies: {{{ID}: {{mode: 'off'}}}}\n", (), id="off"),
        pytest.param("", ("--ignore", ID), id="ignored"),
        pytest.param("excluded_namespaces: [research, ml-serving, evaluation, ml-training]\n", (), id="excluded"),
    ],
)
def test_no_finding_without_the_policy(
    policy: str, arguments: tuple[str, ...], audit: Callable[..., dict[str, Any]]
) -> None:
    assert findings(audit(policy, *arguments)) == {}


def test_no_finding_without_metrics(audit: Callable[..., dict[str, Any]]) -> None:
    assert findings(audit(measured=False)) == {}
