"""`gpugate doctor` as it is called; what it finds on a real API server is told by the end-to-end tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from cluster.fake_api_server import Answer, FakeApiServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cli.conftest import Ran

    Run = Callable[..., Ran]

ADMISSION = "admissionregistration.k8s.io"


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig for a cluster in which nothing is installed."""
    server = FakeApiServer()
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        server.serve(ADMISSION, ("v1",), kind, f"{kind.lower()}s", namespaced=False)
    server.answers += [Answer("/version", body=b'{"gitVersion": "v1.36.3"}')] * 2
    server.start()
    yield server.kubeconfig(tmp_path / "kubeconfig")
    server.stop()


def test_a_cluster_without_an_installation_is_told_what_is_missing(gpugate: Run, empty: Path) -> None:
    ran = gpugate("doctor", "--kubeconfig", empty)

    assert (ran.code, ran.err) == (1, "")
    assert "error[missing]: the configuration does not exist" in ran.out
    assert "gpugate registration" in ran.out


def test_programs_get_a_versioned_document(gpugate: Run, empty: Path) -> None:
    ran = gpugate("doctor", "--kubeconfig", empty, "-o", "json")

    document = json.loads(ran.out)
    assert (document["schema"], document["summary"]["exit_code"], ran.code) == ("gpugate.dev/doctor/v1", 1, 1)


def test_an_api_server_that_does_not_answer_is_not_a_healthy_installation(gpugate: Run, tmp_path: Path) -> None:
    server = FakeApiServer()

    ran = gpugate("doctor", "--kubeconfig", server.kubeconfig(tmp_path / "kubeconfig"))

    server.stop()

    assert (ran.code, ran.out, "connection refused" in ran.err) == (4, "", True)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--kubeconfig", "nowhere"], "no kubeconfig at nowhere"),
        (["--policy-file", "nowhere.yaml"], "nowhere.yaml: no such file"),
        (["--fail", "everything"], "invalid value 'everything'"),
    ],
)
def test_a_mistake_is_named(gpugate: Run, flags: list[str], says: str) -> None:
    ran = gpugate("doctor", *flags)

    assert (ran.code, says in ran.err) == (2, True)
