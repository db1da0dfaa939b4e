"""What still passes, and what users are told, when the webhook is down, slow or answers rubbish."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from api_server.stub_webhook import allowing, patching, raw
from cluster.ports import free_ports
from cluster.service_account import NAMESPACE
from stub_webhook.certificates import Authority
from stub_webhook.server import Call, Stub, allow
from violating import blameless_pod, node_class, pod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from api_server.responses import HttpAnswer
    from cluster.api import Api
    from failure_policy.conftest import Registered

Json = dict[str, Any]
NOWHERE: list[Json] = [{"op": "add", "path": "/metadata/nowhere/a", "value": "b"}]


def plain_pod(namespace: str) -> Json:
    plain = blameless_pod(namespace)
    del plain["spec"]["containers"][0]["resources"]
    return plain


def gpu_job(namespace: str) -> Json:
    spec = blameless_pod(namespace)["spec"] | {"restartPolicy": "Never"}
    metadata = {"name": "trains", "namespace": namespace}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": spec}}}


# What is created, and whether gpugate could refuse it.
OBJECTS: dict[str, tuple[Callable[[str], Json], bool]] = {
    "GPU Pod": (blameless_pod, True),
    "Pod that sees all GPUs": (pod, True),
    "EC2NodeClass": (lambda _: node_class(), True),
    "Pod without GPU": (plain_pod, False),
    "Job of GPU Pods": (gpu_job, False),
    "GPU Pod in kube-system": (lambda _: blameless_pod("kube-system"), False),
    "GPU Pod in gpugate's namespace": (lambda _: blameless_pod(NAMESPACE), False),
}
# What a mutating webhook is asked about.
CHANGED = {"GPU Pod", "EC2NodeClass"}


@dataclass(frozen=True)
class Fault:
    """What is wrong with a webhook, and what a user is told of it.

    Attributes:
        said: part of the message.
        behaviour: what it answers.
        down: whether nobody listens.
        another_certificate: whether nobody vouches for it.
    """

    said: str
    behaviour: Callable[[Call], HttpAnswer] = allow
    down: bool = False
    another_certificate: bool = False


FAULTS = {
    "down": Fault("connect: connection refused", down=True),
    "another certificate": Fault("certificate signed by unknown authority", another_certificate=True),
    "500": Fault('an error on the server ("it broke")', lambda _: raw(b"it broke", 500, content_type="text/plain")),
    "503": Fault("is currently unable to handle the request", lambda _: raw(b"", 503)),
    "truncated": Fault("json parse error", lambda call: raw(allow(call).body[:-5])),
    "HTML": Fault("json parse error", lambda _: raw(b"<html>", content_type="text/html")),
    "wrong uid": Fault("expected response.uid", lambda call: allowing(call.request, uid="another")),
    "redirects for ever": Fault("stopped after 10 redirects", lambda call: raw(b"", 307, location=call.path)),
}


@contextmanager
def serving(fault: Fault, folder: Path) -> Iterator[tuple[str, str]]:
    """Serve with a fault; gives the URL and the `caBundle`."""
    with Stub(folder) as stub:
        stub.behaviour = fault.behaviour
        bundle = stub.authority.bundle
        if fault.another_certificate:
            stub.certify(Authority("another"))
        yield f"https://127.0.0.1:{free_ports(1)[0]}" if fault.down else stub.url, bundle


def passing(api: Api, tenant: str) -> dict[str, bool]:
    """Try to create each object, and tell which pass."""
    return {name: api.create(make(tenant), dry_run=True).ok for name, (make, _) in OBJECTS.items()}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_fail_holds_up_what_could_be_refused_and_nothing_else(
    api: Api, tenant: str, registered: Registered, tmp_path: Path, fault: Fault
) -> None:
    with serving(fault, tmp_path) as (url, bundle), registered(url, bundle, "Fail"):
        assert passing(api, tenant) == {name: not judged for name, (_, judged) in OBJECTS.items()}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_ignore_holds_up_nothing(api: Api, tenant: str, registered: Registered, tmp_path: Path, fault: Fault) -> None:
    with serving(fault, tmp_path) as (url, bundle), registered(url, bundle, "Ignore"):
        assert passing(api, tenant) == dict.fromkeys(OBJECTS, True)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_what_a_user_is_told(api: Api, tenant: str, registered: Registered, tmp_path: Path, fault: Fault) -> None:
    with serving(fault, tmp_path) as (url, bundle), registered(url, bundle, "Fail"):
        answer = api.create(blameless_pod(tenant), dry_run=True)
    assert answer.code == 500
    assert answer.message.startswith('Internal error occurred: failed calling webhook "pods.mutate.gpugate.dev": ')
    assert fault.said in answer.message


@pytest.mark.parametrize(("policy", "ok"), [("Fail", False), ("Ignore", True)])
def test_a_webhook_that_answers_too_late(
    api: Api, tenant: str, registered: Registered, tmp_path: Path, policy: Any, *, ok: bool
) -> None:
    over = threading.Event()

    def late(call: Call) -> HttpAnswer:
        over.wait(60)
        return allow(call)

    fault = Fault("context deadline exceeded", late)
    with serving(fault, tmp_path) as (url, bundle), registered(url, bundle, policy, timeout_seconds=1):
        try:
            answer = api.create(blameless_pod(tenant), dry_run=True)
        finally:
            over.set()
    assert answer.ok == ok
    assert ok or fault.said in answer.message, answer.message


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_patch_that_does_not_apply_holds_up_what_is_changed_even_with_ignore(
    api: Api, tenant: str, registered: Registered, tmp_path: Path, policy: Any
) -> None:
    fault = Fault("", lambda call: patching(call.request, NOWHERE) if call.path == "/mutate" else allow(call))
    with serving(fault, tmp_path) as (url, bundle), registered(url, bundle, policy):
        assert passing(api, tenant) == {name: name not in CHANGED for name in OBJECTS}
