"""`gpugate audit --contexts`: several API servers, of which some cannot be audited."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from audit.memory_source import pod, workload
from cluster.fake_api_server import FakeApiServer, status

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.registration.rbac import audited_resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Run = Callable[..., Any]


def server(uid: str) -> FakeApiServer:
    """An API server with one Deployment."""
    made = FakeApiServer()
    for resource in audited_resources(bind(CATALOG, PolicyConfig())):
        kind = resource.kind
        versions = ("v1",) if kind.versions == ("*",) else tuple(reversed(kind.versions))
        made.serve(kind.group, versions, kind.name, kind.plural, namespaced=kind.namespaced)
    made.serve("", ("v1",), "ConfigMap", "configmaps")
    deployment = workload("Deployment", "web")
    for name in ("kube-system", "team"):
        made.store.put(("", "namespaces"), {"metadata": {"name": name, "uid": f"{uid}-{name}"}})
    made.store.put(("apps", "deployments"), deployment)
    made.store.put(("", "pods"), pod("web-1", owner=deployment))
    return made


@pytest.fixture
def fleet() -> Iterator[dict[str, FakeApiServer]]:
    """Two clusters that are audited, one whose lists are partly forbidden, one that refuses, and one that is not there."""
    servers = {
        name: server(f"uid-{name}") for name in ("prod-a", "prod-b", "prod-partial", "prod-refuses", "prod-gone")
    }
    for name, each in servers.items():
        if name != "prod-gone":
            each.start()
    servers["prod-partial"].forbidden.add("poddisruptionbudgets")
    servers["prod-refuses"].answers += [status("/version", 401, "Unauthorized") for _ in range(9)]
    yield servers
    for each in servers.values():
        each.stop()


@pytest.fixture
def kubeconfig(fleet: dict[str, FakeApiServer], tmp_path: Path) -> Path:
    file = tmp_path / "kubeconfig"
    urls = {
        **{name: each.url for name, each in fleet.items()},
        "again-a": fleet["prod-a"].url,
        "dev": "http://0.0.0.0:1",
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url}} for name, url in urls.items()],
        "users": [{"name": "tester", "user": {"token": "none"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "tester"}} for name in urls],
        "current-context": "dev",
    }
    file.write_text(json.dumps(config))
    return file


def test_what_can_be_audited_is_reported_and_the_rest_is_named(gpugate: Run, kubeconfig: Path, tmp_path: Path) -> None:
    flags = ("--kubeconfig", kubeconfig, "--contexts", "prod-*", "--parallel", "3", "--no-cost")
    each = tmp_path / "{cluster}.md"

    ran = gpugate("audit", *flags, "-o", "text", "-o", f"json={tmp_path / 'all.json'}", "-o", f"markdown={each}")

    report = json.loads((tmp_path / "all.json").read_bytes())
    results = {cluster["context"]: cluster["result"] for cluster in report["clusters"]}
    assert ran.code == 4
    assert results == {
        "prod-a": "complete",
        "prod-b": "complete",
        "prod-partial": "partial",
        "prod-refuses": "failed",
        "prod-gone": "failed",
    }
    assert (report["totals"]["clusters"], "Audited 3 of 5 clusters (prod-*)" in ran.out) == (3, True)
    assert [line.partition(":")[0] for line in ran.out.partition("INCOMPLETE\n")[2].splitlines()[:3]] == [
        "  prod-partial",
        "  prod-refuses",
        "  prod-gone",
    ]
    assert "error: prod-refuses: " in ran.err
    assert "error: prod-gone: " in ran.err
    assert "Traceback" not in ran.err
    # Forbidden lists are a gap of the report of this cluster, which is complete.
    assert sorted(file.name for file in tmp_path.glob("*.md")) == ["prod-a.md", "prod-b.md", "prod-partial.md"]


def test_the_totals_are_those_of_the_clusters(gpugate: Run, kubeconfig: Path) -> None:
    ran = gpugate("audit", "--kubeconfig", kubeconfig, "--contexts", "prod-[", "--contexts", "prod-a", "--no-cost")
    assert (ran.code, "--contexts prod-[: no context of the kubeconfig matches; it has prod-a, prod-b" in ran.err) == (
        2,
        True,
    )

    contexts = ("--contexts", "prod-a", "--contexts", "prod-b", "--contexts", "again-*")
    ran = gpugate("audit", "--kubeconfig", kubeconfig, *contexts, "--no-cost", "-o", "json", "--include-passed")

    report = json.loads(ran.out)
    one, other, again = report["clusters"]
    assert (ran.code, ran.err, report["totals"]["clusters"]) == (0, "", 2)
    assert (again["context"], again["result"], again["reason"]) == (
        "again-a",
        "repeated",
        "the same cluster as prod-a, where it counts",
    )
    assert report["totals"]["objects"] == {
        action: one["report"]["summary"][action] + other["report"]["summary"][action]
        for action in one["report"]["summary"]
    }


def test_a_policy_file_with_clusters_is_read_for_each_context(gpugate: Run, kubeconfig: Path, tmp_path: Path) -> None:
    policies = tmp_path / "policy.yaml"
    policies.write_text(
        "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: warn\nclusters:\n- {match: {name: '*-b'}, mode: audit}\n"
    )
    contexts = ("--contexts", "prod-a", "--contexts", "prod-b")

    flags = ("-p", policies, "--as-mode", "as-is", "--no-cost", "-o", "json")
    report = json.loads(gpugate("audit", "--kubeconfig", kubeconfig, *contexts, *flags).out)

    modes = [
        {finding["mode"] for each in cluster["report"]["objects"] for finding in each["findings"]}
        for cluster in report["clusters"]
    ]
    assert modes == [{"warn"}, {"audit"}]


def test_findings_decide_the_exit_code(gpugate: Run, kubeconfig: Path) -> None:
    contexts = ("--contexts", "prod-a", "--contexts", "prod-gone")

    ran = gpugate("audit", "--kubeconfig", kubeconfig, *contexts, "--no-cost", "--fail-on", "warn")

    assert ran.code == 1, ran.out


WRONG = {
    "a dump": (("--from", "dump.json"), "--contexts selects clusters: remove --from"),
    "a context": (("--context", "prod-a"), "--contexts and --context contradict each other"),
    "a name": (("--cluster-name", "a"), "--cluster-name names one cluster"),
    "a format of one cluster": (("-o", "html=a.html"), "such as -o html={cluster}-a.html"),
    "exemptions": (("--write-exemptions", "a.yaml", "--exemption-owner", "b"), "write {cluster} in its name"),
    "no context": (("--contexts", "stage-*"), "--contexts stage-*: no context of the kubeconfig matches"),
    "a policy": (("--select", "pods/no-such-policy"), "pods/no-such-policy"),
}


@pytest.mark.parametrize(("flags", "message"), WRONG.values(), ids=WRONG)
def test_wrong_flags_are_refused(gpugate: Run, kubeconfig: Path, flags: tuple[str, ...], message: str) -> None:
    ran = gpugate("audit", "--kubeconfig", kubeconfig, "--contexts", "prod-a", *flags)

    assert (ran.code, ran.out, message in ran.err) == (2, "", True), ran.err
