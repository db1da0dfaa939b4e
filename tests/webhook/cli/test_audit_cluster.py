"""`gpugate audit` of a cluster: a fake API server with a few objects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from audit.memory_source import named, pod, workload
from cluster.fake_api_server import FakeApiServer, status

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.registration.rbac import audited_resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Run = Callable[..., Any]

CONFIGURATION, CONFIGURATIONS = "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"
POLICY = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: {}\n"


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    """Everything that an audit reads is served; one Deployment with its Pod is stored."""
    server = FakeApiServer()
    for resource in audited_resources(bind(CATALOG, PolicyConfig())):
        kind = resource.kind
        versions = ("v1",) if kind.versions == ("*",) else tuple(reversed(kind.versions))
        server.serve(kind.group, versions, kind.name, kind.plural, namespaced=kind.namespaced)
    server.serve("", ("v1",), "ConfigMap", "configmaps")
    deployment = workload("Deployment", "web")
    server.store.put(("", "namespaces"), {"metadata": {"name": "team"}})
    server.store.put(("apps", "deployments"), deployment)
    server.store.put(("", "pods"), pod("web-1", owner=deployment))
    yield server.start()
    server.stop()


@pytest.fixture
def audit(api: FakeApiServer, gpugate: Run, tmp_path: Path) -> Run:
    def run(*arguments: str | Path) -> tuple[Any, Any]:
        file = tmp_path / "report.json"
        kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
        ran = gpugate("audit", "--kubeconfig", kubeconfig, "--include-passed", "-o", f"json={file}", *arguments)
        return ran, json.loads(file.read_bytes()) if file.exists() else None

    return run


def install(api: FakeApiServer, name: str, mode: str, namespace: str = "gpugate") -> None:
    config_map = named("ConfigMap", name, namespace)
    api.store.put(("", "configmaps"), {**config_map, "data": {"policy.yaml": POLICY.format(mode)}})


@pytest.mark.parametrize("flag", ["--select", "--ignore"])
def test_reports_are_never_written_of_some_policies_only(audit: Run, flag: str) -> None:
    ran, report = audit("--write-reports", flag, "pods/unprotected-training")

    assert (ran.code, report) == (2, None)
    assert "remove --select and --ignore" in ran.err


def test_a_cluster_is_audited(audit: Run) -> None:
    ran, report = audit()

    assert (ran.code, ran.err) == (0, "")
    assert [(each["object"]["name"], each["pods"]) for each in report["objects"]] == [("web", 1), ("team", 0)]
    assert (report["cluster"]["name"], report["cluster"]["version"]) == ("fake", "v1.36.3")
    assert (report["coverage"], report["not_evaluated"]) == (1, [])


def test_nothing_is_written(api: FakeApiServer, audit: Run) -> None:
    audit()

    writes = [request for request in api.requests if not request.startswith("GET")]
    assert [request.partition(" ")[2] for request in writes] == ["/apis/authentication.k8s.io/v1/selfsubjectreviews"]


def test_the_installed_policy_file_is_used(api: FakeApiServer, audit: Run) -> None:
    install(api, "gpugate-policy", "audit")

    _, report = audit("--as-mode", "as-is")

    assert {f["mode"] for each in report["objects"] for f in each["findings"]} == {"audit"}
    assert "policy file of ConfigMap gpugate/gpugate-policy" in report["remarks"]


@pytest.mark.parametrize("readable", [True, False])
def test_a_policy_file_in_a_bundle_is_not_said_to_be_missing(api: FakeApiServer, audit: Run, *, readable: bool) -> None:
    if not readable:
        api.forbidden.add("deployments")
    reference = f"ghcr.io/acme/policies@sha256:{'0' * 64}"
    webhook = workload("Deployment", "gpugate", namespace="gpugate")
    webhook["metadata"]["labels"] = {"app.kubernetes.io/name": "gpugate"}
    webhook["spec"]["template"]["spec"]["initContainers"] = [
        {"name": "bundle", "args": ["bundle", "pull", reference, "/a"]}
    ]
    api.store.put(("apps", "deployments"), webhook)

    _, report = audit()
    asked, _ = audit("--with-installed")

    advice = f"run `gpugate bundle pull {reference} DIRECTORY`, and set --policy-file DIRECTORY/policy.yaml"
    (remark,) = [each for each in report["remarks"] if each.startswith("no policy file was given")]
    assert (f"the installed one is in a bundle ({advice})" in remark) is readable
    assert (asked.code, advice in asked.err) == (2, readable)


def register(api: FakeApiServer, namespace: str) -> None:
    api.serve("admissionregistration.k8s.io", ("v1",), CONFIGURATION, CONFIGURATIONS, namespaced=False)
    webhook = {"name": "pods.gpugate.dev", "clientConfig": {"service": {"name": "gpugate", "namespace": namespace}}}
    by_url = {"name": "other.gpugate.dev", "clientConfig": {"url": "https://127.0.0.1/validate"}}
    stored = {"metadata": {"name": "gpugate"}, "webhooks": [by_url, webhook]}
    api.store.put(("admissionregistration.k8s.io", CONFIGURATIONS), stored)


@pytest.mark.parametrize("registered", ["", "platform"])
def test_the_policy_file_of_a_tenant_is_not_used(api: FakeApiServer, audit: Run, registered: str) -> None:
    if registered:
        register(api, registered)
    install(api, "gpugate-policy", "audit", namespace="team")

    _, report = audit("--as-mode", "as-is")
    assert "no policy file was given, and none is installed: every policy has its shipped mode" in report["remarks"]

    install(api, "gpugate-policy", "warn", namespace=registered or "gpugate")
    _, report = audit("--as-mode", "as-is")
    assert f"policy file of ConfigMap {registered or 'gpugate'}/gpugate-policy" in report["remarks"]


def test_without_the_right_to_read_registrations_the_namespace_is_the_usual_one(api: FakeApiServer, audit: Run) -> None:
    register(api, "platform")
    api.forbidden.add(CONFIGURATIONS)
    install(api, "gpugate-policy", "warn")

    _, report = audit("--as-mode", "as-is")

    assert "policy file of ConfigMap gpugate/gpugate-policy" in report["remarks"]


FLEET = """\
apiVersion: gpugate.dev/v1
kind: PolicyConfig
mode: warn
platform: {{cluster: {cluster}}}
clusters:
  - match: {{env: dev}}
    mode: audit
"""
CLUSTERS = {
    "of the policy file": ("{labels: {env: dev}}", (), {"audit"}),
    "of the flags": ("null", ("--cluster-name", "a", "--cluster-label", "env=dev"), {"audit"}),
    "of both": ("{labels: {env: dev}}", ("--cluster-label", "env=prod"), {"warn"}),
}


@pytest.mark.parametrize(("cluster", "flags", "modes"), CLUSTERS.values(), ids=CLUSTERS)
def test_the_policy_file_is_that_of_the_cluster(
    api: FakeApiServer, audit: Run, cluster: str, flags: tuple[str, ...], modes: set[str]
) -> None:
    config_map = named("ConfigMap", "gpugate-policy", "gpugate")
    api.store.put(("", "configmaps"), {**config_map, "data": {"policy.yaml": FLEET.format(cluster=cluster)}})

    ran, report = audit("--as-mode", "as-is", *flags)

    assert ran.code == 0, ran.err
    assert {finding["mode"] for each in report["objects"] for finding in each["findings"]} == modes


@pytest.mark.parametrize(
    ("config_maps", "arguments", "message"),
    [
        pytest.param((), ("--with-installed",), "no ConfigMap with the label", id="none-though-asked-for"),
        pytest.param(("a", "b"), (), "several policy files are installed", id="two"),
    ],
)
def test_a_policy_file_that_is_not_clear_is_asked_for(
    api: FakeApiServer, audit: Run, config_maps: tuple[str, ...], arguments: tuple[str, ...], message: str
) -> None:
    for name in config_maps:
        install(api, name, "warn")

    ran, report = audit(*arguments)

    assert (ran.code, report) == (2, None)
    assert message in ran.err


def test_a_forbidden_list_is_stated(api: FakeApiServer, audit: Run) -> None:
    api.forbidden.add("poddisruptionbudgets")

    ran, report = audit("--require-coverage", "100")

    assert ran.code == 4
    assert report["not_evaluated"][0]["what"] == "poddisruptionbudgets.policy"


def test_a_named_namespace_is_read_where_all_may_not_be(api: FakeApiServer, audit: Run) -> None:
    api.answers.append(status("/api/v1/pods?", 403, "Forbidden"))

    ran, report = audit("-n", "team")

    assert ran.code == 0
    assert [(each["object"]["kind"], each["pods"]) for each in report["objects"]] == [
        ("Deployment", 1),
        ("Namespace", 0),
    ]


def test_a_cluster_that_is_not_there_is_said(api: FakeApiServer, audit: Run) -> None:
    api.answers += [status("/version", 401, "Unauthorized") for _ in range(9)]
    ran, report = audit()

    assert (ran.code, report) == (4, None)
    assert "401" in ran.err


def test_an_earlier_report_stays_when_an_audit_fails(api: FakeApiServer, audit: Run, tmp_path: Path) -> None:
    _, before = audit()
    api.answers += [status("/version", 401, "Unauthorized") for _ in range(9)]

    audit()

    assert json.loads((tmp_path / "report.json").read_bytes()) == before


@pytest.mark.parametrize(
    ("forbidden", "code", "error"),
    [
        pytest.param("", 0, "", id="read"),
        pytest.param("namespaces", 4, "the id of the cluster is unknown", id="no-rights"),
    ],
)
def test_tables_of_a_cluster_without_a_name_have_its_uid(
    api: FakeApiServer, audit: Run, tmp_path: Path, forbidden: str, code: int, error: str
) -> None:
    api.store.put(("", "namespaces"), {"metadata": {"name": "kube-system"}})
    api.forbidden.add(forbidden)

    ran, report = audit("-o", f"ndjson={tmp_path / 'audits'}")

    assert (ran.code, error in ran.err) == (code, True)
    folders = {path.parent.name for path in (tmp_path / "audits").rglob("*.ndjson")}
    assert folders == ({f"cluster={report['cluster']['uid']}"} if report["cluster"]["uid"] else set())
    assert bool(report["cluster"]["uid"]) == (not forbidden)
