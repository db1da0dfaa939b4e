from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from audit.memory_source import gpu_spec, pod

from gpugate.webhook.audit.formats.names import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., Any]

PLATFORM = Path(__file__).parents[2] / "fixtures" / "dumps" / "ml-platform"
BLOCKED = {
    "Deployment/ml-serving/reranker",
    "HorizontalPodAutoscaler/ml-serving/reranker",
    "NodePool/gpu-h100-research",
    "Pod/research/debug-shell",
    "PodDisruptionBudget/research/notebook",
    "ResourceClaimTemplate/research/whole-node",
    "ScaledObject/ml-serving/llm-chat",
    "ScaledObject/ml-serving/reranker",
}


@pytest.fixture
def audit(gpugate: Run, tmp_path: Path) -> Run:
    """Audit the dump in the repository, or another; returns the report, read from JSON, beside what was printed."""

    def run(*arguments: str | Path, dump: Path = PLATFORM) -> tuple[Any, Any]:
        file = tmp_path / "report.json"
        ran = gpugate("audit", "--from", dump, "-o", f"json={file}", *arguments)
        return ran, json.loads(file.read_bytes()) if file.exists() else None

    return run


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return a dump with one Pod, which would be changed and warned about."""
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod("alone")))
    return file


def names(report: Any, action: str) -> set[str]:
    found = (each for each in report["objects"] if each["action"] == action)
    parts = ([o["kind"], o.get("namespace", ""), o["name"]] for o in (each["object"] for each in found))
    return {"/".join(part for part in each if part) for each in parts}


def test_a_dump_is_audited_as_a_cluster_is(audit: Run) -> None:
    ran, report = audit()

    assert (ran.code, names(report, "deny")) == (0, BLOCKED)
    assert report["counts"]["Pod"] == 29
    assert report["coverage"] == 1
    assert report["cost"]["allocated"] > report["cost"]["at_risk"] > 0


def test_pods_are_rolled_up_to_what_somebody_wrote(audit: Run) -> None:
    _, report = audit("--include-passed")

    pods = {each["object"]["name"] for each in report["objects"] if each["object"]["kind"] == "Pod"}
    assert pods == {"debug-shell", "evaluation"}
    assert not {"ReplicaSet", "RayCluster"} & {each["object"]["kind"] for each in report["objects"]}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_written(gpugate: Run, tmp_path: Path, name: str) -> None:
    file = tmp_path / "report"

    ran = gpugate("audit", "--from", PLATFORM, "-o", f"{name}={file}")

    assert (ran.code, ran.out) == (0, "")
    assert "reranker" in file.read_text() or name == "prometheus"
    assert list(tmp_path.iterdir()) == [file]


def test_the_table_is_the_default(gpugate: Run) -> None:
    ran = gpugate("audit", "--from", PLATFORM)

    assert "IF CREATED NOW  deny 8" in ran.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param((), 0, id="no-gate"),
        pytest.param(("--fail-on", "deny"), 1, id="deny"),
        pytest.param(("--fail-on", "mutate"), 1, id="mutate"),
        pytest.param(("--fail-on", "deny", "-n", "ml-training"), 0, id="nothing-so-bad"),
        pytest.param(("--fail-on", "warn", "-n", "ml-training"), 1, id="something-worse"),
        pytest.param(("--fail-on", "warn", "-n", "web"), 0, id="nothing-at-all"),
        pytest.param(("--fail-on", "deny", "--as-mode", "warn"), 0, id="as-if-it-only-warned"),
        pytest.param(("--require-coverage", "100"), 0, id="everything-was-looked-at"),
        pytest.param(("--fail-on", "never", "--min-coverage", "99%"), 0, id="both-spellings"),
    ],
)
def test_the_exit_code_says_what_was_asked(audit: Run, arguments: tuple[str, ...], code: int) -> None:
    assert audit(*arguments)[0].code == code


def test_less_than_the_coverage_that_is_required_is_said(audit: Run, small: Path) -> None:
    ran, report = audit("--require-coverage", "90", dump=small)

    assert ran.code == 4
    assert "below the 90% of --require-coverage" in ran.err
    assert report is not None


def test_a_complete_dump_covers_what_it_does_not_have(audit: Run, small: Path) -> None:
    ran, report = audit("--require-coverage", "90", "--complete-context", dump=small)

    assert (ran.code, report["not_evaluated"]) == (0, [])


def test_a_dump_without_objects_is_nothing_to_audit(gpugate: Run, tmp_path: Path) -> None:
    assert gpugate("audit", "--from", tmp_path).code == 3


def test_what_if_the_mode_were_another(audit: Run, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: audit\n")

    enforced, installed = (audit("-p", policy, *more)[1] for more in ((), ("--as-mode", "as-is")))

    assert (names(installed, "deny"), names(enforced, "deny")) == (set(), BLOCKED)


def test_the_generation_is_that_of_the_policy_file(audit: Run, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n")

    assert audit()[1]["generation"] == "shipped"
    assert len(audit("-p", policy)[1]["generation"]) == 12


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        (("--include", "nodepools"), {"NodePool"}),
        (("--include", "NodePool,ec2nodeclasses.karpenter.k8s.aws"), {"NodePool", "EC2NodeClass"}),
        (("-l", "app=reranker"), {"Deployment"}),
        (("-n", "web", "--exclude", "deployment"), {"CronJob", "HorizontalPodAutoscaler", "Namespace"}),
        (("-n", "research", "--exclude-namespace", "research"), set()),
    ],
)
def test_only_what_was_selected_is_reported_on(audit: Run, arguments: tuple[str, ...], kinds: set[str]) -> None:
    _, report = audit("--include-passed", *arguments)

    assert {each["object"]["kind"] for each in report["objects"]} == kinds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-A", "-n", "web"), "-A and -n contradict each other"),
        (("--include", "nodepol"), "did you mean NodePool?"),
        (("-l", "app>3"), "invalid label selector"),
        (("--write-reports",), "--write-reports writes into a cluster: remove --from"),
        (("--salt", "a"), "--salt needs --anonymize"),
        (("--with-installed",), "--with-installed needs a cluster"),
        (("--kubeconfig", "x"), "remove one of them"),
        (("--write-exemptions", "x"), "--exemption-owner"),
        (("--anonymize", "--write-exemptions", "x", "--exemption-owner", "a"), "--anonymize removes names"),
        (("--compare", "missing.json"), "--compare missing.json: no such file or directory"),
        (("--price-table", "missing.csv"), "missing.csv: no such file or directory"),
        (("--price-table", "x", "--no-cost"), "contradict each other"),
        (("-p", "missing.yaml"), "missing.yaml: no such file or directory"),
        (("-o", "pdf"), "-o pdf: unknown format\nwrite text, wide"),
        (("--select", "pods/none"), "unknown policy"),
        (("--from", "missing"), "--from missing: no such file or directory"),
    ],
)
def test_wrong_usage_says_what_to_do(audit: Run, arguments: tuple[str, ...], message: str) -> None:
    ran, report = audit(*arguments)

    assert (ran.code, report) == (2, None)
    assert message in ran.err


@pytest.mark.parametrize(
    "arguments",
    [("--qps", "0"), ("--burst", "-1"), ("--chunk-size", "x"), ("--top", "-1"), ("--min-coverage", "101")],
)
def test_a_number_out_of_range_is_refused(audit: Run, arguments: tuple[str, ...]) -> None:
    assert audit(*arguments)[0].code == 2


def test_an_earlier_audit_is_compared_with(audit: Run, gpugate: Run, tmp_path: Path, small: Path) -> None:
    audit(dump=small)
    earlier = tmp_path / "earlier.json"
    (tmp_path / "report.json").rename(earlier)
    small.write_text(
        json.dumps(pod("alone", {**gpu_spec(), "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}))
    )

    ran = gpugate("audit", "--from", small, "--compare", earlier)

    assert "pods/missing-gpu-toleration" in ran.out


def test_a_history_shows_how_the_figures_moved(gpugate: Run, tmp_path: Path, small: Path) -> None:
    history, page = tmp_path / "history", tmp_path / "page.html"
    first = gpugate("audit", "--from", small, "--history", history)
    small.write_text(json.dumps(pod("alone", {"containers": [{"name": "a", "image": "a:1"}]})))

    again = gpugate("audit", "--from", small, "--history", history, "-o", "text", "-o", f"html={page}")
    compared = gpugate("audit", "--from", small, "--compare", history)

    assert ("TREND" in first.out, "TREND" in again.out, "TREND" in compared.out) == (False, True, True)
    assert "gone: policy pods/missing-gpu-toleration" in again.out
    assert "<section id=trend>" in page.read_text()
    assert [len(file.read_text().splitlines()) for file in history.iterdir()] == [2]


def test_several_earlier_audits_are_a_trend(audit: Run, gpugate: Run, tmp_path: Path, small: Path) -> None:
    earlier = []
    for number in range(3):
        audit(dump=small)
        earlier.append(tmp_path / f"earlier-{number}.json")
        (tmp_path / "report.json").rename(earlier[-1])

    ran = gpugate("audit", "--from", small, *(part for file in earlier for part in ("--compare", file)))

    assert "3 earlier audits" in ran.out
    assert "CHANGES since" in ran.out


def test_a_history_needs_names(gpugate: Run, small: Path, tmp_path: Path) -> None:
    ran = gpugate("audit", "--from", small, "--history", tmp_path, "--anonymize")

    assert (ran.code, ran.err.startswith("error: --anonymize removes names, which the records of --history need")) == (
        2,
        True,
    )


def test_exemptions_let_enforcement_begin(audit: Run, tmp_path: Path) -> None:
    policy = tmp_path / "exemptions.yaml"

    audit("--write-exemptions", policy, "--exemption-owner", "platform", "--exemption-days", "30")
    _, report = audit("-p", policy)

    assert names(report, "deny") == set()


def test_names_are_taken_out(audit: Run) -> None:
    _, report = audit("--anonymize", "--salt", "a")

    text = json.dumps(report)
    assert not [name for name in ("reranker", "ml-serving", "debug-shell", "notebook", "ml-platform/") if name in text]


def test_no_cost_says_nothing_of_money(audit: Run) -> None:
    assert audit("--no-cost")[1].get("cost") is None


def test_a_file_that_cannot_be_written_leaves_nothing_behind(gpugate: Run, tmp_path: Path) -> None:
    folder = tmp_path / "missing"

    ran = gpugate("audit", "--from", PLATFORM, "-o", f"json={folder / 'report.json'}")

    assert (ran.code, list(tmp_path.iterdir())) == (2, [])


def test_the_rights_are_those_to_read(gpugate: Run) -> None:
    ran = gpugate("audit", "--print-rbac", "--service-account", "ops/auditor")

    role, binding = yaml.safe_load_all(ran.out)
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list"}
    assert "secrets" not in {resource for rule in role["rules"] for resource in rule["resources"]}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "namespace": "ops", "name": "auditor"}]


def test_one_line_sums_up(audit: Run) -> None:
    ran, _ = audit("--summary-log")

    assert json.loads(ran.err)["deny"] == len(BLOCKED)


def test_a_dump_with_the_namespace_has_the_id_of_its_cluster(gpugate: Run, tmp_path: Path) -> None:
    dump, policy, out = tmp_path / "dump.json", tmp_path / "policy.yaml", tmp_path / "out.json"
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "6f2e1b0a"}}
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [system]}))
    policy.write_text(
        "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nplatform: {cluster: {region: eu-1, labels: {env: prod}}}\n"
    )

    ran = gpugate("audit", "--from", dump, "-o", f"json={out}", "-p", policy, "--cluster-label", "tier=a")
    document = json.loads(out.read_bytes())

    assert (ran.code, ran.err) == (0, "")
    cluster = document["cluster"]
    assert (cluster["id"], cluster["uid"], cluster["region"]) == ("6f2e1b0a", "6f2e1b0a", "eu-1")
    assert cluster["labels"] == {"env": "prod", "tier": "a"}
    assert document["run_id"].startswith(document["time"][:4])


@pytest.mark.parametrize("suffix", ["ndjson", "parquet"])
def test_tables_are_written_beside_other_outputs(audit: Run, tmp_path: Path, suffix: str) -> None:
    ran, report = audit("-o", f"{suffix}={tmp_path / 'audits'}", "--cluster-name", "prod-1")

    assert (ran.code, ran.err) == (0, "")
    found = {path.relative_to(tmp_path / "audits").parts for path in (tmp_path / "audits").rglob(f"*.{suffix}")}
    day, file = f"dt={report['time'][:10]}", f"{report['run_id']}.{suffix}"
    assert found == {(table, day, "cluster=prod-1", file) for table in ("runs", "money", "objects", "findings")}


def test_tables_that_cannot_be_written_leave_the_other_outputs(audit: Run, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("")

    ran, report = audit("-o", f"ndjson={blocked}/audits", "--cluster-name", "prod-1")

    assert (ran.code, names(report, "deny")) == (4, BLOCKED)
    assert ran.err == f"error: -o ndjson={blocked}/audits: not a directory\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "ndjson"), "add a directory or a bucket"),
        (("-o", "ndjson=audits", "--anonymize"), "the tables of -o ndjson and -o parquet need"),
        (("-o", "ndjson=x", "-o", "parquet=x"), "x already has format ndjson"),
    ],
)
def test_outputs_that_do_not_fit_are_refused(audit: Run, arguments: tuple[str, ...], message: str) -> None:
    ran, report = audit(*arguments)

    assert (ran.code, report) == (2, None)
    assert message in ran.err
