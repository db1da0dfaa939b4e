"""How gpugate is installed in a cluster of kind: the commands that are given, and what the chart makes of them."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cluster.answer import Answer
from cluster.certificates import Files
from cluster.control_plane import ControlPlane
from cluster.installed_webhook import InstalledWebhook, installed_webhook, values
from cluster.kind import ROOT, KindError

import tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHART = ROOT / "charts/gpugate"
POLICY = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\npolicies: {nodepools/*: {mode: warn}}\n"
# Both write down how they were called; `kubectl port-forward` answers as a Pod that is ready would, until it is ended.
HELM = '#!/bin/sh\necho "helm $*" >> "{folder}/calls"\nexit {code}\n'
KUBECTL = """#!{python}
import http.server, sys
with open("{folder}/calls", "a") as calls:
    print("kubectl", *sys.argv[1:], file=calls)
class Pod(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"gpugate_reviews_total 7\\n")
if "port-forward" in sys.argv:
    port = next(word for word in sys.argv if word.endswith(":8081")).partition(":")[0]
    http.server.HTTPServer(("127.0.0.1", int(port)), Pod).serve_forever()
"""


class StubApi:
    """Remembers what is deleted; whatever is created is, and nobody is asked about it."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    def delete(self, ref: dict[str, Any]) -> None:
        self.deleted.append(f"{ref['kind']} {ref['metadata']['name']}")

    def create(self, obj: dict[str, Any], *, dry_run: bool) -> Answer:
        assert dry_run
        return Answer(201, obj, [])


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("GPUGATE_E2E_BIN", str(folder))
    put(folder, "helm", HELM.format(folder=folder, code=0))
    put(folder, "kubectl", KUBECTL.format(folder=folder, python=sys.executable))
    return folder


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    (folder / name).chmod(0o755)


def calls(programs: Path) -> list[list[str]]:
    return [line.split() for line in (programs / "calls").read_text(encoding="utf-8").splitlines()]


@contextmanager
def installed(folder: Path, api: Any = None) -> Iterator[InstalledWebhook]:
    nobody = Files(folder / "admin.crt", folder / "admin.key")
    control_plane = ControlPlane("https://127.0.0.1:1", folder / "ca.crt", nobody, folder / "kubeconfig", {}, 0)
    with installed_webhook(api or StubApi(), control_plane, folder) as webhook:
        yield webhook


def test_it_is_installed_reached_and_uninstalled(programs: Path, tmp_path: Path) -> None:
    with installed(tmp_path) as webhook:
        assert webhook.health.ready()
    cluster = f"--namespace gpugate-system --kubeconfig {tmp_path}/kubeconfig"
    chart = f"{CHART} --values {tmp_path}/values.json --create-namespace --wait --timeout 180s"
    install, forward, uninstall = (" ".join(call) for call in calls(programs))
    assert install == f"helm upgrade --install gpugate {chart} {cluster}"
    assert forward.startswith(f"kubectl --kubeconfig={tmp_path}/kubeconfig port-forward deployment/gpugate ")
    assert uninstall == f"helm uninstall gpugate --ignore-not-found --wait --timeout 180s {cluster}"


def test_another_policy_file_is_an_upgrade_and_another_pod(programs: Path, tmp_path: Path) -> None:
    with installed(tmp_path) as webhook:
        webhook.use(POLICY)
        told = json.loads((tmp_path / "values.json").read_text(encoding="utf-8"))
        assert webhook.metric("gpugate_reviews_total") == 7
    assert told["policy"] == {"mode": None, "policies": {"nodepools/*": {"mode": "warn"}}}
    assert [call[:2] for call in calls(programs)][:4:2] == [["helm", "upgrade"]] * 2


def test_it_is_asked_no_more_once_its_configurations_are_gone(programs: Path, tmp_path: Path) -> None:
    api = StubApi()
    with installed(tmp_path, api) as webhook:
        webhook.unregister()
        webhook.register()
    assert api.deleted == ["MutatingWebhookConfiguration gpugate", "ValidatingWebhookConfiguration gpugate"]
    assert [call[1] for call in calls(programs) if call[0] == "helm"] == ["upgrade", "upgrade", "uninstall"]


def test_what_helm_refuses_is_said_and_cleaned_up(programs: Path, tmp_path: Path) -> None:
    put(programs, "helm", HELM.format(folder=programs, code="1").replace("exit 1", "echo no such chart >&2; exit 1"))
    with pytest.raises(KindError, match="no such chart"), installed(tmp_path):
        pass
    assert [call[1] for call in calls(programs)] == ["upgrade", "uninstall"]


@pytest.mark.parametrize("name", ["url", "authority", "process", "metrics_folder"])
@pytest.mark.usefixtures("programs")
def test_what_a_webhook_in_a_cluster_has_not_leaves_the_test_out(tmp_path: Path, name: str) -> None:
    with installed(tmp_path) as webhook, pytest.raises(pytest.skip.Exception, match=f"CLUSTER=kind: `{name}`"):
        getattr(webhook, name)


@pytest.mark.parametrize("policy", [{}, {"mode": "warn"}], ids=["shipped", "with a ceiling"])
def test_the_chart_takes_what_it_is_told(tmp_path: Path, policy: dict[str, Any]) -> None:
    file = tmp_path / "values.json"
    file.write_text(json.dumps(values(policy)), encoding="utf-8")
    command = [
        str(tools.path("helm")),
        "template",
        "gpugate",
        str(CHART),
        "--namespace",
        "gpugate-system",
        "-f",
        str(file),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- helm
    assert ran.returncode == 0, ran.stderr
    objects = [each for each in yaml.load_all(ran.stdout, yaml.CSafeLoader) if each]
    deployment = next(each for each in objects if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert (deployment["spec"]["replicas"], container["image"]) == (1, "gpugate:e2e")
    (configured,) = (each["data"]["policy.yaml"] for each in objects if "policy.yaml" in each.get("data", {}))
    assert yaml.safe_load(configured).get("mode") == policy.get("mode")
