"""What is checked for every bad input, sent to the server as a process of its own.

`review(obj, **members)` makes a review of an object that is created; a member given as `...` is left out. `ask(path,
review)` returns the `response`, checked against what the API server accepts (`k8s.io/apiserver` v1.36,
pkg/admission/plugin/webhook/request/admissionreview.go, pkg/admission/attributes.go, pkg/endpoints/filters/warning.go).
After each test the server must still answer a good review, and must not have written a traceback or the canary to its
log.
"""

from __future__ import annotations

import base64
import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import EllipsisType

    Json: TypeAlias = dict[str, Any]

PATIENCE_SECONDS = 90
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
CANARY = "c4n4ry-d0-n0t-l0g"
ANNOTATION_KEY = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class Log:
    """What the server writes to stderr."""

    def __init__(self, webhook: Any) -> None:
        self._file = webhook.log_file
        self._read = 0

    def new(self) -> str:
        """Return what was written since the last call."""
        written = self._file.read_bytes()
        text: str = written[self._read :].decode()
        self._read = len(written)
        return text

    def line_about(self, uid: str) -> str:
        """Wait for the line of a review; lines are written behind the answers."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            for line in self._file.read_text().splitlines(keepends=False):
                if f'"{uid}"' in line:
                    return line
            time.sleep(0.01)
        pytest.fail(f"nothing was logged of {uid}")


def children(pid: int) -> str:
    """Return the processes that a process started, as Linux lists them."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()


@pytest.fixture(scope="session")
def log(webhook: Any) -> Log:
    return Log(webhook)


@pytest.fixture
def canary() -> str:
    return CANARY


@pytest.fixture(autouse=True)
def the_server_goes_on(webhook: Any, captured: Callable[[str], bytes], log: Log) -> Iterator[None]:
    workers = children(webhook.process.pid)
    yield
    connection = webhook.connect()
    try:
        connection.request("POST", "/validate", captured("pod-delete.validate"), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["response"]["allowed"]) == (200, True)
    finally:
        connection.close()
    assert re.search(f"Traceback|{CANARY}", log.new()) is None
    # A worker that died would be replaced, and nobody would see it.
    assert children(webhook.process.pid) == workers


def _without_absent(members: dict[str, Any | EllipsisType]) -> Json:
    return {key: value for key, value in members.items() if value is not ...}


@pytest.fixture(scope="session")
def review() -> Callable[..., Json]:
    def make(obj: Any, **members: Any) -> Json:
        group, _, version = obj["apiVersion"].rpartition("/")
        metadata = obj.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        request = {
            "uid": UID,
            "kind": {"group": group, "version": version, "kind": obj["kind"]},
            "resource": {"group": group, "version": version, "resource": obj["kind"].lower() + "s"},
            "name": metadata.get("name") if isinstance(metadata.get("name"), str) else "",
            "namespace": metadata.get("namespace", ...),
            "operation": "CREATE",
            "userInfo": {"username": "admin", "groups": ["system:masters"]},
            "object": obj,
            "oldObject": None,
            "dryRun": False,
            "options": None,
        }
        envelope = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
        return envelope | {"request": _without_absent(request | members)}

    return make


def _strictly(text: bytes) -> Any:
    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is no JSON")

    answer = json.loads(text.decode("utf-8", "strict"), parse_constant=refuse)
    # A lone surrogate passes as an escape and fails here.
    json.dumps(answer, ensure_ascii=False).encode("utf-8", "strict")
    return answer


def _check_patch(encoded: str) -> None:
    operations = _strictly(base64.b64decode(encoded, validate=True))
    assert {operation["op"] for operation in operations} <= {"add", "replace", "remove"}
    assert all(operation["path"].startswith("/") for operation in operations)


def _check(path: str, response: Json, uid: str) -> None:
    allowed, status, warnings = response["allowed"], response.get("status"), response.get("warnings", [])
    assert (response["uid"], type(allowed)) == (uid, bool)
    assert ("patch" in response) == (response.get("patchType") == "JSONPatch") == ("patchType" in response)
    if "patch" in response:
        assert (path, allowed) == ("/mutate", True)
        _check_patch(response["patch"])
    assert (status is None) is allowed
    if status is not None:
        assert (path, status["status"], 400 <= status["code"] < 500) == ("/validate", "Failure", True), status
        assert 0 < len(status["message"]) <= 1024
        assert status["message"].replace("\n", "").isprintable()
    assert len(warnings) <= 20
    assert [warning for warning in warnings if len(warning) > 120 or not warning.isprintable()] == []
    annotations = response.get("auditAnnotations", {})
    assert [key for key in annotations if not ANNOTATION_KEY.fullmatch(key)] == []
    # Where a policy raises an exception, this says which.
    assert annotations.get("error") is None


@pytest.fixture(scope="session")
def read_answer() -> Callable[..., Json]:
    def read(path: str, text: bytes, uid: str, api_version: str = "admission.k8s.io/v1") -> Json:
        answer = _strictly(text)
        assert (answer["kind"], answer["apiVersion"]) == ("AdmissionReview", api_version)
        _check(path, answer["response"], uid)
        response: Json = answer["response"]
        return response

    return read


@pytest.fixture(scope="session")
def ask(webhook: Any, read_answer: Callable[..., Json]) -> Callable[..., Json]:
    def send(path: str, sent: Json | bytes, uid: str = UID, api_version: str = "admission.k8s.io/v1") -> Json:
        body = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        code, _, text = webhook.request("POST", f"{path}?timeout=10s", body)
        assert code == 200, text
        return read_answer(path, text, uid, api_version)

    return send
