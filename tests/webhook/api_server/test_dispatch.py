"""In which order webhooks are asked, how often, and about what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest
from api_server.admission import ApiServer
from api_server.attributes import create, update
from api_server.stub_webhook import InProcess, allowing, patching
from api_server.webhooks import Webhook

if TYPE_CHECKING:
    from collections.abc import Callable

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "team", "labels": {"remove": "me"}},
    "spec": {"containers": []},
}


def labelling(key: str) -> Callable[[dict[str, Any]], Any]:
    """Add a label that counts how often it was added."""

    def behave(request: dict[str, Any]) -> Any:
        times = int(request["object"]["metadata"]["labels"].get(key, "0")) + 1
        return patching(request, [{"op": "add", "path": f"/metadata/labels/{key}", "value": str(times)}])

    return behave


def hook(
    behaviour: Callable[[dict[str, Any]], Any], reinvocation: Literal["Never", "IfNeeded"] = "Never", name: str = "w"
) -> Webhook:
    return Webhook(f"{name}.example.com", InProcess(behaviour), reinvocation_policy=reinvocation)


def labels(*mutating: Webhook) -> dict[str, str]:
    outcome = ApiServer(mutating=mutating).admit(create(POD))
    assert outcome.object is not None
    found: dict[str, str] = outcome.object["metadata"]["labels"]
    return {key: value for key, value in found.items() if key != "remove"}


@pytest.mark.parametrize(
    ("mutating", "expected"),
    [
        pytest.param([hook(labelling("a")), hook(labelling("b"))], {"a": "1", "b": "1"}, id="never"),
        pytest.param(
            [hook(labelling("a"), "IfNeeded"), hook(labelling("b"))], {"a": "2", "b": "1"}, id="changed-after"
        ),
        pytest.param([hook(labelling("a"), "IfNeeded"), hook(allowing)], {"a": "1"}, id="not-changed-after"),
        pytest.param(
            [hook(labelling("a")), hook(labelling("b"), "IfNeeded")], {"a": "1", "b": "1"}, id="changed-before"
        ),
        pytest.param(
            [hook(labelling("a"), "IfNeeded"), hook(labelling("b"), "IfNeeded")],
            {"a": "2", "b": "2"},
            id="changed-in-the-second-round-too",
        ),
    ],
)
def test_P_090_reinvocation(mutating: list[Webhook], expected: dict[str, str]) -> None:  # noqa: N802 -- the contract's number
    assert labels(*mutating) == expected


def test_P_031_every_call_has_its_own_uid() -> None:  # noqa: N802 -- the contract's number
    first = hook(labelling("a"), "IfNeeded")
    outcome = ApiServer((first, hook(labelling("b"))), (hook(allowing),)).admit(create(POD))
    assert len({call.uid for call in outcome.calls}) == len(outcome.calls) == 4


def test_P_011_the_second_webhook_sees_what_the_first_did() -> None:  # noqa: N802 -- the contract's number
    second = InProcess(allowing)
    ApiServer((hook(labelling("a")), Webhook("b.example.com", second))).admit(create(POD))
    assert second.seen[0]["object"]["metadata"]["labels"]["a"] == "1"


def test_P_093_defaults_are_filled_in_after_each_patch() -> None:  # noqa: N802 -- the contract's number
    second = InProcess(allowing)
    api_server = ApiServer(
        (hook(lambda r: patching(r, [{"op": "remove", "path": "/spec/containers"}])), Webhook("b.example.com", second)),
        default=lambda obj: obj | {"spec": {"containers": ["default"]} | obj["spec"]},
    )
    api_server.admit(create(POD))
    assert second.seen[0]["object"]["spec"]["containers"] == ["default"]


def test_P_034_the_name_is_generated_before_validation() -> None:  # noqa: N802 -- the contract's number
    mutating, validating = InProcess(allowing), InProcess(allowing)
    generated = POD | {"metadata": {"generateName": "g-", "namespace": "team"}}
    ApiServer((Webhook("m.example.com", mutating),), (Webhook("v.example.com", validating),)).admit(create(generated))
    assert "name" not in mutating.seen[0]
    assert validating.seen[0]["name"].startswith("g-")
    assert validating.seen[0]["object"]["metadata"]["name"] == validating.seen[0]["name"]


def test_an_update_keeps_its_metadata() -> None:
    validating = InProcess(allowing)
    ApiServer(validating=(Webhook("v.example.com", validating),)).admit(update(POD, POD))
    assert validating.seen[0]["object"]["metadata"].keys() == {"name", "namespace", "labels", "managedFields"}


def test_P_011_the_first_validating_denial_is_told() -> None:  # noqa: N802 -- the contract's number
    denying = [hook(lambda r: allowing(r, allowed=False), name=name) for name in ("one", "two")]
    outcome = ApiServer(validating=(hook(allowing), *denying)).admit(create(POD))
    assert outcome.message == 'admission webhook "one.example.com" denied the request without explanation'
    assert len(outcome.calls) == 3
