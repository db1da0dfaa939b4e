"""`gpugate webhook wait` where the API server reaches the webhook, and where it does not."""

from __future__ import annotations

import base64
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from api_server.stub_webhook import allowing, raw
from cluster.ports import free_ports
from cluster.service_account import NAMESPACE
from gpu_pods import until
from operated import NAME, Operated
from stub_webhook.certificates import Authority
from stub_webhook.server import Stub

from gpugate.webhook.registration.probe import ANNOTATION

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from api_server.responses import HttpAnswer
    from cluster.api import Api
    from cluster.control_plane import ControlPlane
    from cluster.served_webhook import ServedWebhook
    from stub_webhook.server import Call


pytestmark = pytest.mark.usefixtures("unregistered")


@pytest.fixture
def operated(api: Api, control_plane: ControlPlane) -> Operated:
    return Operated(api, control_plane.admin_kubeconfig)


def test_it_is_reached(operated: Operated, webhook: ServedWebhook) -> None:
    with operated.registered(webhook.url, webhook.authority.read_bytes()):
        ran = operated.webhook("wait", "-n", NAMESPACE)

    assert (ran.returncode, ran.stdout) == (
        0,
        f"the API server reaches gpugate in {NAMESPACE}, to mutate and to validate\n",
    ), ran.stderr


def test_it_is_not_registered(operated: Operated) -> None:
    ran = operated.webhook("wait", "-n", NAMESPACE, "--timeout", "0")

    assert ran.returncode == 1
    assert f"MutatingWebhookConfiguration {NAME} does not exist" in ran.stderr
    assert f"ValidatingWebhookConfiguration {NAME} does not exist" in ran.stderr


@contextmanager
def closed_port(_: Path) -> Iterator[tuple[str, bytes]]:
    yield f"https://127.0.0.1:{free_ports(1)[0]}", _pem(Authority("nobody"))


@contextmanager
def another_authority(folder: Path) -> Iterator[tuple[str, bytes]]:
    with Stub(folder) as stub:
        yield stub.url, _pem(Authority("stub"))


@contextmanager
def another_name(folder: Path) -> Iterator[tuple[str, bytes]]:
    authority = Authority("stub")
    with Stub(folder) as stub:
        stub.certify(authority, ["gpugate.elsewhere.svc"])
        yield stub.url, _pem(authority)


@contextmanager
def no_pem(folder: Path) -> Iterator[tuple[str, bytes]]:
    with Stub(folder) as stub:
        yield stub.url, b"-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n"


@contextmanager
def slow(folder: Path) -> Iterator[tuple[str, bytes]]:
    over = threading.Event()

    def late(call: Call) -> HttpAnswer:
        over.wait(60)
        return allowing(call.request)

    with _stub(folder, late) as found:
        try:
            yield found
        finally:
            over.set()


@contextmanager
def elsewhere(folder: Path) -> Iterator[tuple[str, bytes]]:
    with _stub(folder, lambda _: raw(b"", 404)) as found:
        yield found


@contextmanager
def hangs_up(folder: Path) -> Iterator[tuple[str, bytes]]:
    with _stub(folder, lambda _: None) as found:
        yield found


@contextmanager
def unknown_host(_: Path) -> Iterator[tuple[str, bytes]]:
    yield "https://gpugate.invalid:8443", _pem(Authority("nobody"))


@contextmanager
def somebody_else(folder: Path) -> Iterator[tuple[str, bytes]]:
    with _stub(folder, lambda call: allowing(call.request)) as found:
        yield found


FAULTS = {
    "nobody listens": (closed_port, "no process listens at this address"),
    "signed by another authority": (another_authority, "no CA in the caBundle signed the certificate"),
    "another name": (another_name, "not valid for the name that the API server verifies"),
    "caBundle of rubbish": (no_pem, "the caBundle of the entry contains no certificates"),
    "slow": (slow, "the webhook did not answer in time"),
    "404": (elsewhere, "the server at this address is not gpugate"),
    "hangs up": (hangs_up, "the connection was closed without a response"),
    "unknown host": (unknown_host, "the host name does not resolve"),
    "an answer of another webhook": (somebody_else, "the API server did not call the webhook to mutate and validate"),
}


@pytest.mark.parametrize(("fault", "said"), FAULTS.values(), ids=FAULTS)
def test_why_it_is_not_reached(operated: Operated, tmp_path: Path, fault: Any, said: str) -> None:
    with fault(tmp_path) as (url, authority), operated.registered(url, authority):
        # Until the API server has heard of it, nobody is asked.
        ran = until(
            lambda: operated.webhook("wait", "-n", NAMESPACE, "--timeout", "4"), lambda each: said in _last(each)
        )

    assert ran.returncode == 1
    assert said in _last(ran), ran.stderr


def _last(ran: subprocess.CompletedProcess[str]) -> str:
    return ran.stderr.rpartition("error:")[2]


def test_a_probe_is_asked_about_only_in_the_namespace_of_the_webhook(
    api: Api, operated: Operated, tmp_path: Path
) -> None:
    with Stub(tmp_path) as stub, operated.registered(stub.url, _pem(stub.authority)):
        assert until(lambda: operated.webhook("wait", "-n", NAMESPACE, "--timeout", "2") and stub.calls, bool)
        stub.calls.clear()
        for namespace, annotations, dry_run in (
            ("default", {ANNOTATION: "0" * 32}, True),
            (NAMESPACE, {ANNOTATION: "0" * 32}, False),
            (NAMESPACE, {"other": "0"}, True),
            (NAMESPACE, {}, True),
        ):
            made = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "plain", "namespace": namespace, "annotations": annotations},
            }
            assert api.create(made, dry_run=dry_run).ok
            api.delete(made)
        assert stub.calls == []


def _pem(authority: Authority) -> bytes:
    return base64.b64decode(authority.bundle)


@contextmanager
def _stub(folder: Path, behaviour: Any) -> Iterator[tuple[str, bytes]]:
    with Stub(folder) as stub:
        stub.behaviour = behaviour
        yield stub.url, _pem(stub.authority)
