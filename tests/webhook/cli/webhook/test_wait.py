from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from operate.fake_installation import MUTATING, VALIDATING, answer, failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from operate.fake_installation import Cluster

CALLED = 'failed calling webhook "probe.validate.gpugate.dev": failed to call webhook: Post "https://a": '


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpugate.webhook.operate.waiting.time.sleep", lambda _: None)


def test_it_is_reached(installed: Cluster, webhook: Callable[..., Any], nonce: str) -> None:
    installed.answers.append(answer(nonce, "mutate", "validate"))

    ran = webhook("wait")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "the API server reaches gpugate in gpugate, to mutate and to validate\n"


def test_it_is_reached_after_a_while_and_each_reason_is_told_once(
    installed: Cluster, webhook: Callable[..., Any], nonce: str
) -> None:
    refused = failure(f"{CALLED}dial tcp 127.0.0.1:1: connect: connection refused")
    installed.answers += [refused, refused, failure(f"{CALLED}EOF"), answer(nonce, "mutate", "validate")]

    ran = webhook("wait")

    assert ran.code == 0
    assert ran.err.count("no process listens at this address") == 1
    assert ran.err.count("closed without a response") == 1


def test_it_is_turned_off_but_reached(installed: Cluster, webhook: Callable[..., Any], nonce: str) -> None:
    webhook("disable", "--yes")
    installed.answers.append(answer(nonce, "mutate", "validate"))

    ran = webhook("wait")

    assert (ran.code, "but admission is off; turn it on with: gpugate webhook enable" in ran.out) == (0, True)


NOT_REACHED = {
    "one phase only": (("mutate",), None, 1, "did not call the webhook to validate"),
    "a forged answer": (("mutate", "valid"), None, 1, "did not call the webhook to validate"),
    "TLS": (
        (),
        failure(f"{CALLED}tls: failed to verify certificate: x509: certificate signed by unknown authority"),
        1,
        "no CA in the caBundle signed the certificate",
    ),
    "no right": (
        (),
        failure('configmaps is forbidden: User "u" cannot create resource "configmaps" in API group', 403, "Forbidden"),
        4,
        "these credentials do not allow a probe",
    ),
    "no namespace": (
        (),
        failure('namespaces "gpugate" not found', 404, "NotFound"),
        4,
        "namespace gpugate does not exist",
    ),
    "logged out": ((), failure("Unauthorized", 401, "Unauthorized"), 4, "does not accept these credentials"),
    "another webhook refuses": (
        (),
        failure('admission webhook "other" denied the request: no', 403, "Forbidden"),
        4,
        "refused the probe before it called the webhook",
    ),
}


@pytest.mark.parametrize(("phases", "said", "code", "why"), NOT_REACHED.values(), ids=NOT_REACHED)
def test_why_it_is_not_reached(
    installed: Cluster,
    webhook: Callable[..., Any],
    nonce: str,
    *,
    phases: tuple[str, ...],
    said: Any,
    code: int,
    why: str,
) -> None:
    installed.answers.append(said or answer(nonce, *phases))

    ran = webhook("wait", "--timeout", "0")

    assert (ran.code, why in ran.err) == (code, True), ran.err


def test_what_is_behind_the_service_is_told_too(installed: Cluster, webhook: Callable[..., Any]) -> None:
    here = {"name": "gpugate", "namespace": "gpugate"}
    installed.store.put(("", "services"), {"metadata": here, "spec": {}})
    endpoints = [{"conditions": {"ready": False}}, {"conditions": {"ready": False}}]
    installed.store.put(("discovery.k8s.io", "endpointslices"), {"metadata": here, "endpoints": endpoints})
    installed.answers.append(failure(f"{CALLED}dial tcp 10.0.0.1:443: connect: connection refused"))

    ran = webhook("wait", "--timeout", "0s")

    assert "Service gpugate/gpugate has 2 endpoints, none of them ready" in ran.err


def test_configurations_that_are_not_there(webhook: Callable[..., Any]) -> None:
    ran = webhook("wait", "--timeout", "0")

    assert ran.code == 1
    assert "MutatingWebhookConfiguration gpugate does not exist" in ran.err
    assert "ValidatingWebhookConfiguration gpugate does not exist" in ran.err


def test_configurations_without_the_entry_for_probes(installed: Cluster, webhook: Callable[..., Any]) -> None:
    for plural, found in zip((MUTATING, VALIDATING), installed.configurations(), strict=True):
        kept = [each for each in found["webhooks"] if not each["name"].startswith("probe.")]
        installed.store.put(plural, {**found, "webhooks": kept})

    ran = webhook("wait", "--timeout", "0")

    assert (ran.code, "has no entry probe.mutate.gpugate.dev" in ran.err) == (1, True)


def test_who_may_not_read_configurations_can_ask_nevertheless(
    installed: Cluster, webhook: Callable[..., Any], nonce: str
) -> None:
    installed.forbidden |= {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}
    installed.answers.append(answer(nonce, "mutate", "validate"))

    assert webhook("wait", "--namespace", "gpugate").code == 0


@pytest.mark.parametrize("text", ["soon", "5 m", "-1", ""])
def test_no_time(webhook: Callable[..., Any], text: str) -> None:
    assert webhook("wait", f"--timeout={text}").code == 2
