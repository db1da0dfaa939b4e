"""An installation that was turned off stays off when its objects are applied again, whoever does it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cluster.namespaces import namespace_object
from cluster.ports import free_ports
from cluster.service_account import NAMESPACE
from operated import KINDS, NAME, Operated, configurations
from stub_webhook.certificates import Authority

import tools
from gpugate.webhook.registration.break_glass import off, on
from gpugate.webhook.registration.objects import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.api import Api
    from cluster.control_plane import ControlPlane

Json = dict[str, Any]
DOCS = Path(__file__).parents[1] / "docs" / "operations.md"

pytestmark = pytest.mark.usefixtures("unregistered")


@pytest.fixture
def operated(api: Api, control_plane: ControlPlane) -> Iterator[Operated]:
    yield Operated(api, control_plane.admin_kubeconfig)
    for kind in KINDS:
        api.delete({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME}})


@pytest.fixture
def chart(tmp_path: Path) -> Callable[[int], Path]:
    """Write both configurations, with a timeout, as a chart whose templates `kubectl apply -f` can read too."""
    made = configurations(Server(b"", namespace=NAMESPACE, url=f"https://127.0.0.1:{free_ports(1)[0]}"))

    def write(timeout: int) -> Path:
        for each in made:
            for entry in each["webhooks"]:
                entry["timeoutSeconds"] = timeout
                entry["failurePolicy"] = "Ignore"
                # A chart never has one: whoever keeps the certificates writes it.
                entry["clientConfig"].pop("caBundle", None)
            template = tmp_path / "chart" / "templates" / f"{each['kind'].lower()}.json"
            template.parent.mkdir(parents=True, exist_ok=True)
            template.write_text(json.dumps(each), encoding="utf-8")
        (tmp_path / "chart" / "Chart.yaml").write_text(
            "apiVersion: v2\nname: operated\nversion: 1.0.0\n", encoding="utf-8"
        )
        return tmp_path / "chart"

    return write


@pytest.fixture(params=["helm", "helm3", "kubectl apply", "kubectl apply --server-side"])
def deploy(request: pytest.FixtureRequest, control_plane: ControlPlane, tmp_path: Path) -> Callable[[Path], None]:
    """Install a chart, or upgrade it."""
    program, *words = request.param.split()
    environment = {**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(control_plane.admin_kubeconfig)}

    def run(chart: Path) -> None:
        if program.startswith("helm"):
            arguments = ["upgrade", "--install", "operated", str(chart), "--namespace", NAMESPACE]
        else:
            arguments = [*words, "-f", str(chart / "templates")]
        ran = subprocess.run(  # noqa: S603 -- ours
            [tools.path(program), *arguments], env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert ran.returncode == 0, ran.stderr

    return run


def test_it_stays_off(
    api: Api, operated: Operated, chart: Callable[[int], Path], deploy: Callable[[Path], None]
) -> None:
    deploy(chart(4))
    _publish(api, operated)
    assert operated.webhook("disable", "--yes").returncode == 0

    deploy(chart(7))

    live = operated.live()
    assert {entry["timeoutSeconds"] for each in live for entry in each["webhooks"]} == {7}
    assert [on(each) for each in live] == [[], []]
    assert all(entry["clientConfig"].get("caBundle") for each in live for entry in each["webhooks"])

    assert operated.webhook("enable", "--force").returncode == 0
    assert [off(each) for each in operated.live()] == [[], []]
    _forget(api)


@pytest.mark.skipif(shutil.which("jq") is None, reason="one of the commands needs jq")
def test_the_commands_without_gpugate(
    api: Api, operated: Operated, chart: Callable[[int], Path], control_plane: ControlPlane, tmp_path: Path
) -> None:
    for template in (chart(4) / "templates").iterdir():
        operated.apply(json.loads(template.read_text(encoding="utf-8")))
    delete, turn_off = re.findall(
        r"^\$ ((?:kubectl delete|for phase).*?)^```", DOCS.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(tools.path("kubectl"))
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(tmp_path), "KUBECONFIG": str(control_plane.admin_kubeconfig)}

    def shell(script: str) -> None:
        command = [
            "/bin/sh",
            "-e",
            "-c",
            re.sub(r"\bgpugate$|(?<=configuration )gpugate\b", NAME, script, flags=re.MULTILINE),
        ]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603 -- ours
        assert ran.returncode == 0, ran.stderr

    shell(turn_off)
    assert [on(each) for each in operated.live()] == [[], []]
    assert operated.webhook("enable", "--force").returncode == 0
    assert [off(each) for each in operated.live()] == [[], []]
    shell(delete)
    assert operated.live() == []
    assert api.get(namespace_object(NAMESPACE))


def _publish(api: Api, operated: Operated) -> None:
    """Write the `caBundle` as the keeper of the certificates does."""
    bundle = Authority("kept").bundle
    for each in operated.live():
        webhooks = [{"name": e["name"], "clientConfig": {"caBundle": bundle}} for e in each["webhooks"]]
        body = {key: each[key] for key in ("apiVersion", "kind")} | {"metadata": {"name": NAME}, "webhooks": webhooks}
        answer = api.apply(body, "gpugate-certificates", force=True)
        assert answer.ok, answer.message


def _forget(api: Api) -> None:
    """Let Helm begin anew: it keeps what it installed in Secrets."""
    api.delete_collection("v1", "Secret", NAMESPACE, labelSelector="owner=helm")
