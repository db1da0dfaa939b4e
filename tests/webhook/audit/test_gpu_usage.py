from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from recorded_metrics import PLATFORM, recorded_metrics

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.audit import command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMATS = ("text", "wide", "json", "html", "markdown", "prometheus")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with recorded_metrics() as url:
        yield url


@pytest.fixture(scope="module")
def written(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("audit")
    outputs = [f"-o={name}={folder / name}" for name in FORMATS]
    assert command.main(["--from", str(PLATFORM), "--prometheus", server, "--idle-budget", "20", *outputs]) == 0
    return {name: (folder / name).read_text(encoding="utf-8") for name in FORMATS}


@pytest.fixture(scope="module")
def report(written: dict[str, str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(written["json"])
    return document


def test_every_allocated_gpu_has_a_use(report: dict[str, Any]) -> None:
    used = {part["use"]: part["gpus"] for part in report["cost"]["used"]}

    assert used == {"busy": 26.0, "under-used": 2.0, "parked": 2.0, "idle": 4.0, "doubtful": 1.0}
    assert report["usage"] == {
        "source": report["usage"]["source"],
        "window_seconds": 86400,
        "queries": 10,
        "coverage": 1.0,
        "problems": [],
    }


def test_objects_with_idle_gpus_are_in_the_document_without_findings_too(report: dict[str, Any]) -> None:
    uses = {
        owner["object"]["name"]: [part["use"] for part in owner.get("gpu_use", {"used": []})["used"]]
        for owner in report["objects"]
    }

    assert uses["notebook"] == ["idle"]
    assert uses["sweep"] == ["busy", "idle"]
    assert uses["llm-chat"] == ["busy", "parked"]
    assert uses["evaluation"] == ["doubtful"]


def test_the_text_begins_with_the_spend_and_lists_the_idle_gpus(written: dict[str, str]) -> None:
    lines = written["text"].splitlines()

    assert lines[2].startswith("GPU SPEND  $296.19/h ($216,215 per month): busy $")
    assert "use in 24 h known for 100% of the allocated GPUs" in lines[3]
    first = next(index for index, line in enumerate(lines) if line.startswith("IDLE AND UNDER-USED"))
    assert lines[first + 1].split()[:3] == ["RayJob/research/sweep", "idle", "2"]
    assert "EVIDENCE" not in written["text"]
    assert "at most 0 requests at a time" in written["wide"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("html", "<section id=idle>"),
        ("html", 'DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID=~"GPU-'),
        ("html", "<td>training"),
        ("markdown", "| StatefulSet/research/notebook | idle | 2 | 13.76 | 10,045 |"),
        ("prometheus", 'gpugate_audit_gpu_use_usd_per_hour{use="idle"} 27.52'),
        ("prometheus", 'gpugate_audit_team_gpu_usd_per_hour{team="training"} 137.6'),
        ("prometheus", "gpugate_audit_gpu_spend_usd_per_hour 296.1"),
        ("prometheus", 'gpugate_audit_namespace_idle_or_parked_usd_per_hour{namespace="research"} 27.52'),
        ("prometheus", "gpugate_audit_idle_budget_usd_per_hour 20\n"),
        ("text", "\n  budget for idle and parked GPUs: $20.00/h, exceeded by $"),
        ("markdown", "**Budget for idle and parked GPUs: $20.00/h, exceeded by $"),
        ("html", "<p class=over>Budget for idle and parked GPUs: $20.00/h, exceeded by $"),
    ],
)
def test_each_format_shows_the_use(name: str, text: str, written: dict[str, str]) -> None:
    assert text in written[name]


EURO = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nplatform: {currency: {symbol: €, per_usd: 0.5}}\n"


@pytest.mark.parametrize("name", ["text", "wide", "markdown", "html"])
def test_reports_show_the_currency_of_the_platform(name: str, server: str, tmp_path: Path) -> None:
    policy, output = tmp_path / "policy.yaml", tmp_path / "report"
    policy.write_text(EURO, encoding="utf-8")
    arguments = ["--from", str(PLATFORM), "--policy-file", str(policy), "--prometheus", server, "--idle-budget", "20"]
    assert command.main([*arguments, "-o", f"{name}={output}"]) == 0
    # The page embeds the JSON document, which is in US dollars.
    shown = output.read_text(encoding="utf-8").split("<script", 1)[0]

    assert "€148.09" in shown
    assert "1 US dollar is €0.5" in shown
    assert "€10.00/h, exceeded by €" in shown
    assert not re.search(r"\$[\d /]", shown)


def test_documents_and_metrics_are_in_us_dollars(server: str, written: dict[str, str], tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(EURO, encoding="utf-8")
    outputs = [f"-o={name}={tmp_path / name}" for name in ("csv", "prometheus")]
    arguments = ["--from", str(PLATFORM), "--policy-file", str(policy), "--prometheus", server, "--idle-budget", "20"]
    assert command.main([*arguments, *outputs]) == 0

    spend = "gpugate_audit_gpu_spend_usd_per_hour 296.1"
    assert spend in written["prometheus"]
    assert spend in (tmp_path / "prometheus").read_text(encoding="utf-8")
    assert "27.52" in (tmp_path / "csv").read_text(encoding="utf-8")


def test_anonymized_uses_contain_no_names(server: str, tmp_path: Path) -> None:
    output = tmp_path / "a.json"
    arguments = ["--from", str(PLATFORM), "--prometheus", server, "--anonymize", "--include-passed"]
    assert command.main([*arguments, "-o", f"json={output}"]) == 0

    text = output.read_text(encoding="utf-8")
    assert '"use": "parked"' in text
    for name in ("notebook-0", "pretrain-7b", "ip-10-0-2-21", "GPU-", server, "evaluation-gpu"):
        assert name not in text


def test_a_server_that_is_away_leaves_the_rest_of_the_audit(capsys: pytest.CaptureFixture[str]) -> None:
    with recorded_metrics() as url:
        pass
    assert command.main(["--from", str(PLATFORM), "--prometheus", url, "-o", "text"]) == 0

    text = capsys.readouterr().out
    assert "unknown $206.75, unallocated $89.44" in text
    assert f"use of GPUs: query of engine-max: {url}: connection refused" in text
    assert "the use of 35 of 35 allocated GPUs is unknown" in text
    assert "deny 8" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--no-cost", "--prometheus", "http://a"], "--prometheus and --no-cost contradict each other"),
        (["--discount", "spot=100"], "invalid discount 'spot=100'"),
        (["--discount", "Spot=10"], "invalid discount 'Spot=10'"),
        (["--discount", "spot"], "invalid discount 'spot'"),
        (["--prometheus", "http://a", "--prometheus-matcher", 'a="b"} or up{c="d"'], "invalid matcher"),
        (["--idle-budget", "5"], "--idle-budget needs the use of GPUs: add --prometheus URL"),
        (["--prometheus", "http://a", "--idle-budget", "-1"], "--idle-budget"),
        (["--prometheus-tenant", "a"], "the --prometheus-* options need an address"),
        (["--prometheus", "http://a", "--prometheus-window", "29m"], "invalid time '29m'"),
        (["--prometheus", "http://a", "--prometheus-window", "31d"], "invalid time '31d'"),
        (["--prometheus", "http://a", "--prometheus-metric", "DCGM_FI_DEV_GPU_UTL=x"], "did you mean DCGM_FI_DEV_GPU_UTIL?"),
        (["--prometheus", "http://a", "--prometheus-metric", "DCGM_FI_DEV_GPU_UTIL=a b"], "write NAME=OTHER"),
    ],
)  # fmt: skip
def test_flags_that_cannot_be_used_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises((GpugateError, SystemExit)) as error:
        command.main(["--from", str(PLATFORM), *arguments])

    assert message in f"{error.value}{capsys.readouterr().err}"
