"""Another mutating webhook reverts or breaks gpugate's patch: the verdict is on the object that would be stored."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pytest
from api_server.attributes import create
from api_server.stub_webhook import InProcess, allowing, patching
from api_server.webhooks import Webhook

if TYPE_CHECKING:
    from collections.abc import Callable

    from api_server.admission import ApiServer
    from api_server.outcomes import Outcome

Json = dict[str, Any]
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
RESOURCES = "/spec/containers/0/resources"


@pytest.fixture
def pod(captured: Callable[[str], bytes]) -> Json:
    obj: Json = json.loads(captured("pod-create-gpu-untolerated.mutate"))["request"]["object"]
    return obj


def without_our_toleration(request: Json) -> Any:
    tolerations = request["object"]["spec"]["tolerations"]
    if TOLERATION not in tolerations:
        return allowing(request)
    return patching(request, [{"op": "remove", "path": f"/spec/tolerations/{tolerations.index(TOLERATION)}"}])


def once(behaviour: Callable[[Json], Any]) -> Callable[[Json], Any]:
    """Apply a behaviour only on the first call."""
    turns = iter([behaviour])

    def behave(request: Json) -> Any:
        return next(turns, allowing)(request)

    return behave


def resources(**amounts: str) -> Callable[[Json], Any]:
    """Set other resources."""
    named = {name.replace("__", "/").replace("_", "."): amount for name, amount in amounts.items()}
    value = {"limits": named, "requests": named}
    return lambda request: patching(request, [{"op": "replace", "path": RESOURCES, "value": value}])


def admitted(
    api_server: ApiServer,
    pod: Json,
    behaviour: Callable[[Json], Any],
    *,
    reinvoked: Literal["Never", "IfNeeded"] = "Never",
    ours_again: Literal["Never", "IfNeeded"] = "IfNeeded",
) -> Outcome:
    """Send a Pod through gpugate's mutation, another webhook and gpugate's validation."""
    hostile = Webhook("other.example.com", InProcess(behaviour), reinvocation_policy=reinvoked, ours=False)
    ours = tuple(replace(webhook, reinvocation_policy=ours_again) for webhook in api_server.mutating)
    return replace(api_server, mutating=(*ours, hostile)).admit(create(pod))


def tolerates(outcome: Outcome) -> bool:
    assert outcome.mutated is not None
    return TOLERATION in outcome.mutated["spec"]["tolerations"]


def test_a_toleration_that_was_removed_is_added_again(api_server: ApiServer, pod: Json) -> None:
    outcome = admitted(api_server, pod, without_our_toleration)
    assert (outcome.admitted, tolerates(outcome)) == (True, True)


def test_the_webhook_is_called_twice_at_most(api_server: ApiServer, pod: Json) -> None:
    outcome = admitted(api_server, pod, without_our_toleration, reinvoked="IfNeeded")
    assert [call.webhook for call in outcome.calls].count("mutate.gpugate.dev") == 2
    assert not tolerates(outcome)


def test_a_second_call_patches_nothing(api_server: ApiServer, pod: Json) -> None:
    other = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]
    outcome = admitted(api_server, pod, once(lambda request: patching(request, other)))
    ours = [call.response for call in outcome.calls if call.webhook == "mutate.gpugate.dev"]
    assert [bool(response.patch) for response in ours] == [True, False]


@pytest.mark.parametrize(
    ("behaviour", "policy"),
    [
        pytest.param(resources(nvidia_com__gpu="1500m"), "pods/invalid-gpu-quantity", id="half-a-GPU-more"),
        pytest.param(
            resources(**{"nvidia_com__gpu": "1", "nvidia_com__mig-1g_5gb": "1"}),
            "pods/mixed-gpu-resources",
            id="a-slice-beside-it",
        ),
        pytest.param(resources(cpu="1"), "pods/gpu-node-squatter", id="no-GPU-any-more"),
    ],
)
def test_validation_evaluates_the_object_of_another_webhook(
    api_server: ApiServer, pod: Json, behaviour: Callable[[Json], Any], policy: str
) -> None:
    outcome = admitted(api_server, pod, behaviour, ours_again="Never")
    assert not outcome.admitted
    assert f'"validate.gpugate.dev" denied the request: [{policy}]' in outcome.message


def test_validation_evaluates_the_fix_of_another_webhook(api_server: ApiServer, pod: Json) -> None:
    broken = json.loads(json.dumps(pod).replace('"nvidia.com/gpu": "1"', '"nvidia.com/gpu": "1500m"'))
    assert not api_server.admit(create(broken)).admitted
    assert admitted(api_server, broken, once(resources(nvidia_com__gpu="1"))).admitted


@pytest.mark.parametrize("amount", ["2", "8"])
def test_another_number_of_GPUs_is_admitted(api_server: ApiServer, pod: Json, amount: str) -> None:  # noqa: N802 -- a unit
    outcome = admitted(api_server, pod, once(resources(nvidia_com__gpu=amount)))
    assert (outcome.admitted, tolerates(outcome)) == (True, True)
