"""What the user is told, and what is kept of warnings and annotations."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from api_server import statuses
from api_server.attributes import create
from api_server.audit_annotations import AuditAnnotations
from api_server.stub_webhook import InProcess, allowing, with_webhook
from api_server.warning_headers import WarningRecorder
from api_server.webhooks import Webhook

POD: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}
DENIED = 'admission webhook "w.example.com" denied the request'


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        pytest.param(None, 400, f"{DENIED} without explanation", id="P-070-no-status"),
        pytest.param({"message": "you shall not pass"}, 400, f"{DENIED}: you shall not pass", id="P-072-message"),
        pytest.param({"reason": "Forbidden", "code": 403}, 403, f"{DENIED}: Forbidden", id="P-072-reason"),
        pytest.param({"code": 200, "status": "Success"}, 400, f"{DENIED} without explanation", id="P-071-success"),
    ],
)
def test_denial(status: Any, code: int, message: str) -> None:
    told = statuses.denial("w.example.com", status)
    assert (told["code"], told["message"], told["status"]) == (code, message, "Failure")


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize("phase", ["mutating", "validating"])
def test_P_074_a_denial_is_not_softened(phase: str, policy: Literal["Fail", "Ignore"]) -> None:  # noqa: N802 -- the contract's number
    webhook = Webhook("w.example.com", InProcess(lambda r: allowing(r, allowed=False)), policy)
    assert not with_webhook(phase, webhook).admit(create(POD)).admitted


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
def test_P_076_warnings(sent: list[str], shown: list[str]) -> None:  # noqa: N802 -- the contract's number
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
def test_P_075_annotation_keys(key: str, kept: bool) -> None:  # noqa: FBT001, N802 -- a table's column; the contract's number
    annotations = AuditAnnotations()
    annotations.add("w.example.com", key, "v")
    assert annotations.kept == ({f"w.example.com/{key}": "v"} if kept else {})


def test_P_075_the_first_value_stays() -> None:  # noqa: N802 -- the contract's number
    annotations = AuditAnnotations()
    for value in ("one", "two", "one"):
        annotations.add("w.example.com", "k", value)
    assert (annotations.kept, annotations.dropped) == ({"w.example.com/k": "one"}, ["w.example.com/k"])


@pytest.mark.parametrize("phase", ["mutating", "validating"])
@pytest.mark.parametrize(
    ("side_effects", "admitted"), [("None", True), ("NoneOnDryRun", True), ("Some", False), ("Unknown", False)]
)
def test_P_040_dry_run(phase: str, side_effects: Any, admitted: bool) -> None:  # noqa: FBT001, N802 -- a table's column; the contract's number
    webhook = Webhook("w.example.com", InProcess(allowing), "Ignore", side_effects=side_effects)
    assert with_webhook(phase, webhook).admit(create(POD).as_dry_run()).admitted is admitted
