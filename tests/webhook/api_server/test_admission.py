"""In which order webhooks are asked, how often and about what, and what becomes of their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest
from api_server.admission import ApiServer
from api_server.attributes import create, delete, update
from api_server.audit_annotations import AuditAnnotations
from api_server.errors import CallError, ConductError
from api_server.outcomes import denial
from api_server.stub_webhook import InProcess, allowing, patching
from api_server.warning_headers import WarningRecorder
from api_server.webhooks import Webhook

if TYPE_CHECKING:
    from collections.abc import Callable

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "team", "labels": {"remove": "me"}},
    "spec": {"containers": []},
}
ADD = {"op": "add", "path": "/metadata/labels/x", "value": "y"}
DENIED = 'admission webhook "w.example.com" denied the request'


def labelling(key: str) -> Callable[[dict[str, Any]], Any]:
    """Add a label that counts how often it was added."""

    def behave(request: dict[str, Any]) -> Any:
        times = int(request["object"]["metadata"]["labels"].get(key, "0")) + 1
        return patching(request, [{"op": "add", "path": f"/metadata/labels/{key}", "value": str(times)}])

    return behave


def patch(*operations: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda request: patching(request, operations)


def hook(
    behaviour: Callable[[dict[str, Any]], Any], reinvocation: Literal["Never", "IfNeeded"] = "Never", name: str = "w"
) -> Webhook:
    return Webhook(f"{name}.example.com", InProcess(behaviour), reinvocation_policy=reinvocation)


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
        pytest.param(
            [hook(allowing, "IfNeeded"), hook(patch({**ADD, "path": "/metadata/labels/remove", "value": "me"}))],
            {},
            id="written-but-not-changed",
        ),
    ],
)
def test_reinvocation(mutating: list[Webhook], expected: dict[str, str]) -> None:
    outcome = ApiServer(mutating=tuple(mutating)).admit(create(POD))
    assert outcome.mutated is not None
    assert outcome.mutated["metadata"]["labels"] == {"remove": "me", **expected}
    assert len(outcome.calls) == max(len(mutating), sum(map(int, expected.values())))


def test_defaults_are_filled_in_after_each_patch() -> None:
    second = InProcess(allowing)
    api_server = ApiServer(
        (hook(patch({"op": "remove", "path": "/spec/containers"})), Webhook("b.example.com", second)),
        default=lambda obj: obj | {"spec": {"containers": ["default"]} | obj["spec"]},
    )
    api_server.admit(create(POD))
    assert second.seen[0]["object"]["spec"]["containers"] == ["default"]


def test_the_name_is_generated_before_validation() -> None:
    mutating, validating = InProcess(allowing), InProcess(allowing)
    generated = POD | {"metadata": {"generateName": "g-", "namespace": "team"}}
    ApiServer((Webhook("m.example.com", mutating),), (Webhook("v.example.com", validating),)).admit(create(generated))
    assert "name" not in mutating.seen[0]
    assert validating.seen[0]["name"].startswith("g-")
    assert validating.seen[0]["object"]["metadata"]["name"] == validating.seen[0]["name"]
    assert validating.seen[0]["uid"] != mutating.seen[0]["uid"]


def test_an_update_keeps_its_metadata() -> None:
    validating = InProcess(allowing)
    ApiServer(validating=(Webhook("v.example.com", validating),)).admit(update(POD, POD))
    assert validating.seen[0]["object"]["metadata"].keys() == {"name", "namespace", "labels", "managedFields"}


def test_a_denial_ends_the_request() -> None:
    denying = hook(lambda r: allowing(r, allowed=False))
    mutating = ApiServer((denying,), (hook(allowing),)).admit(create(POD))
    validating = ApiServer((hook(patch(ADD)),), (denying,)).admit(create(POD))
    assert [len(outcome.calls) for outcome in (mutating, validating)] == [1, 2]
    assert {outcome.message for outcome in (mutating, validating)} == {f"{DENIED} without explanation"}
    assert mutating.mutated is None
    assert validating.mutated is not None
    assert (mutating.admitted, validating.admitted) == (False, False)


@pytest.mark.parametrize(
    ("operation", "error", "said"),
    [
        pytest.param(
            {"op": "replace", "path": "/metadata/labels/new", "value": "x"},
            ConductError,
            "does not exist",
            id="conduct",
        ),
        pytest.param(ADD | {"value": 1}, CallError, "Pod.metadata.labels.x", id="label-a-number"),
        pytest.param(
            {"op": "add", "path": "/spec/terminationGracePeriodSeconds", "value": "30"},
            CallError,
            "Pod.spec.terminationGracePeriodSeconds",
            id="seconds-a-string",
        ),
        pytest.param(
            {"op": "add", "path": "/spec/tolerations", "value": {"key": "a"}},
            CallError,
            "Pod.spec.tolerations",
            id="tolerations-an-object",
        ),
        pytest.param({"op": "replace", "path": "/kind", "value": "Dog"}, CallError, 'no kind "Dog"', id="another-kind"),
    ],
)
def test_a_patch_that_must_not_be_sent_fails_the_test(
    operation: dict[str, Any], error: type[AssertionError], said: str
) -> None:
    with pytest.raises(error, match=said):
        ApiServer((hook(patch(operation)),)).admit(create(POD))


def test_so_does_a_patch_of_a_deletion() -> None:
    with pytest.raises(CallError, match="where there is no object"):
        ApiServer((hook(patch(ADD)),)).admit(delete(POD))


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        pytest.param(None, 400, f"{DENIED} without explanation", id="no-status"),
        pytest.param({"message": "you shall not pass"}, 400, f"{DENIED}: you shall not pass", id="message"),
        pytest.param({"reason": "Forbidden", "code": 403}, 403, f"{DENIED}: Forbidden", id="reason"),
        pytest.param({"code": 200, "status": "Success"}, 400, f"{DENIED} without explanation", id="success"),
    ],
)
def test_denial(status: Any, code: int, message: str) -> None:
    told = denial("w.example.com", status)
    assert (told["code"], told["message"], told["status"]) == (code, message, "Failure")


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        pytest.param(["a", "", "a", "b"], ["a", "b"], id="empty-and-repeated"),
        pytest.param(["a\nb", "a\x7fb", "a\x85b", "ok"], ["ok"], id="control-characters"),
        pytest.param(["x" * 300], ["x" * 300], id="long-alone"),
        pytest.param([f"{n:02}" + "x" * 252 for n in range(30)], [f"{n:02}" + "x" * 252 for n in range(17)], id="many"),
        pytest.param([str(n) * 1000 for n in range(6)], [str(n) * 256 for n in range(6)], id="many-long-ones-are-cut"),
    ],
)
def test_warnings(sent: list[str], shown: list[str]) -> None:
    recorder = WarningRecorder()
    for text in sent:
        recorder.add(text)
    assert recorder.sent == shown


@pytest.mark.parametrize(
    ("key", "kept"),
    [
        ("denied", True),
        ("a.b-c_d", True),
        ("x" * 63, True),
        ("x" * 64, False),
        ("a/b", False),
        ("-a", False),
        ("", False),
    ],
    ids=["word", "punctuation", "63", "64", "slash", "dash-first", "empty"],
)
def test_annotation_keys(key: str, kept: bool) -> None:  # noqa: FBT001 -- a table's column
    annotations = AuditAnnotations()
    annotations.add("w.example.com", key, "v")
    assert annotations.kept == ({f"w.example.com/{key}": "v"} if kept else {})


def test_the_first_value_stays() -> None:
    annotations = AuditAnnotations()
    for value in ("one", "two", "one"):
        annotations.add("w.example.com", "k", value)
    assert (annotations.kept, annotations.dropped) == ({"w.example.com/k": "one"}, ["w.example.com/k"])
