"""The webhook with an API server: cluster data decides reviews, and readiness waits for it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from cluster.fake_api_server import FakeApiServer
from eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HPAS = ("autoscaling", "horizontalpodautoscalers")
POLICY = "scaling/hpa-conflict"


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    server = FakeApiServer()
    server.serve("autoscaling", ("v2", "v1"), "HorizontalPodAutoscaler", "horizontalpodautoscalers")
    server.serve("keda.sh", ("v1alpha1",), "ScaledObject", "scaledobjects")
    yield server
    server.stop()


@pytest.fixture
def serve(start_process: Callable[..., Any], api: FakeApiServer, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    started = []

    def start(*flags: str) -> Any:
        kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
        command = [sys.executable, "-m", "gpugate.webhook.cli.main", "serve", "--host", "127.0.0.1", "--port", "0"]
        command += ["--health-port", "0", "--drain", "0", "--ca-file", str(tmp_path / "ca.crt")]
        started.append(start_process([*command, "--kubeconfig", str(kubeconfig), *flags], tmp_path / "ca.crt"))
        return started[-1]

    yield start
    for webhook in started:
        webhook.stop()


@pytest.fixture
def scaled_object(captured: Callable[[str], bytes]) -> Any:
    return json.loads(captured("scaledobject-create.validate"))["request"]["object"]


def autoscaler(scaled_object: Any) -> dict[str, Any]:
    target = scaled_object["spec"]["scaleTargetRef"]
    reference = {"apiVersion": "apps/v1", "kind": target.get("kind", "Deployment"), "name": target["name"]}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "by-hand", "namespace": scaled_object["metadata"]["namespace"]},
        "spec": {"maxReplicas": 4, "scaleTargetRef": reference},
    }


def outcome(webhook: Any, review: bytes) -> dict[str, str]:
    return dict(webhook.validate(review)["auditAnnotations"])


def test_cluster_data_decides(
    serve: Callable[..., Any], api: FakeApiServer, captured: Callable[[str], bytes], scaled_object: Any
) -> None:
    webhook = (api.start(), serve("--workers", "2"))[1]
    review = captured("scaledobject-create.validate")
    before = outcome(webhook, review)
    api.store.put(HPAS, autoscaler(scaled_object))
    assert POLICY not in before.get("skip", "") + before.get("warn", "")
    assert eventually(lambda: POLICY in outcome(webhook, review).get("warn", ""))


def test_readiness_waits_until_the_cluster_answers(serve: Callable[..., Any], api: FakeApiServer) -> None:
    webhook = serve("--workers", "1")
    readiness = webhook.readiness()
    api.start()
    assert ("missing: worker 1: facts: " in readiness, "not listed yet" in readiness) == (True, True)
    assert eventually(lambda: webhook.readiness() == "ok\n")


def test_an_outage_changes_nothing(
    serve: Callable[..., Any], api: FakeApiServer, captured: Callable[[str], bytes], scaled_object: Any
) -> None:
    api.start().store.put(HPAS, autoscaler(scaled_object))
    webhook = serve("--workers", "1")
    api.stop()
    warned = outcome(webhook, captured("scaledobject-create.validate"))["warn"]
    assert (POLICY in warned, webhook.readiness()) == (True, "ok\n")


def test_a_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gpugate.webhook.cli.main", "serve", "--kubeconfig", str(tmp_path / "nowhere")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- ours
    assert (ended.returncode, "nowhere" in ended.stderr, "Traceback" in ended.stderr) == (2, True, False)
