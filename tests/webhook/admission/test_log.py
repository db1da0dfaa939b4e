from __future__ import annotations

import datetime as dt
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.verdict import Finding, Outcome, Verdict
from gpugate.policies.sdk.findings import Patch, Stance, Violation
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.decisions import Observation
from gpugate.webhook.admission.log import Log
from gpugate.webhook.admission.review import Review, UnacceptableError, UnattributableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NOW = dt.datetime(2026, 11, 21, 8, 30, 0, 250_000, tzinfo=dt.UTC)
REQUEST = Request(
    GroupVersionKind("", "v1", "Pod"),
    Operation.CREATE,
    {"metadata": {"labels": {"token": "canary"}}},
    generate_name="a-\n\x1b[31m",
    namespace="team",
    user="u" * 500,
)
DENIED = Outcome("pods/x", Stance.ENFORCE, (Finding("pods/x", (), "m", Stance.ENFORCE),))
PATCHED = Outcome("pods/y", Stance.ENFORCE, patches=(Patch("set", ("spec",), "canary", "r"),))
BROKEN = Outcome("pods/z", Stance.WARN, error="KeyError")
WARNED = Outcome("pods/w", Stance.WARN, (Finding("pods/w", (), "m", Stance.WARN),))
OPERATIONS = ({"op": "add", "path": "/spec", "value": "canary"},)


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def log(log_file: Path) -> Iterator[Log]:
    with log_file.open("wb") as file:
        yield Log(descriptor=file.fileno(), clock=lambda: NOW)


@pytest.fixture
def lines(log_file: Path) -> Callable[[], list[dict[str, Any]]]:
    return lambda: [json.loads(line) for line in log_file.read_bytes().splitlines()]


def evaluated(verdict: Verdict, phase: Phase = Phase.VALIDATE) -> Observation:
    return Observation(phase, 0.0012345, "3f2a", Review("u", "admission.k8s.io/v1", REQUEST), verdict)


@pytest.mark.parametrize(
    ("observation", "decision", "policies", "mode"),
    [
        pytest.param(evaluated(Verdict(REQUEST, (DENIED, WARNED))), "deny", ["pods/x"], "enforce", id="denied"),
        pytest.param(
            evaluated(Verdict(REQUEST, (PATCHED, WARNED), operations=OPERATIONS), Phase.MUTATE),
            "mutate",
            ["pods/y"],
            "enforce",
            id="patched",
        ),
        pytest.param(
            evaluated(Verdict(REQUEST, malformed=(Violation((), "m"),))), "malformed", [], None, id="malformed"
        ),
        pytest.param(evaluated(Verdict(REQUEST, (BROKEN,))), "error", ["pods/z"], "warn", id="broke"),
    ],
)
def test_line_of_a_review(
    log: Log,
    lines: Callable[[], list[dict[str, Any]]],
    observation: Observation,
    decision: str,
    policies: list[str],
    mode: str | None,
) -> None:
    log.observe(observation)
    (line,) = lines()
    assert (line["decision"], line["policies"], line.get("mode")) == (decision, policies, mode)


def test_every_field_of_a_review(log: Log, lines: Callable[[], list[dict[str, Any]]]) -> None:
    log.observe(evaluated(Verdict(REQUEST, (DENIED,))))
    assert lines() == [
        {
            "time": "2026-11-21T08:30:00.250Z",
            "level": "info",
            "message": "review",
            "decision": "deny",
            "phase": "validate",
            "uid": "u",
            "kind": "v1 Pod",
            "namespace": "team",
            "name": r"a-\n\x1b[31m*",
            "operation": "CREATE",
            "user": "u" * 250 + "...",
            "dry_run": False,
            "policies": ["pods/x"],
            "mode": "enforce",
            "generation": "3f2a",
            "milliseconds": 1.234,
        }
    ]


def test_the_time_of_a_line_is_in_utc_with_milliseconds(
    log_file: Path, lines: Callable[[], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        with log_file.open("wb") as file:
            Log(descriptor=file.fileno()).event("info", "m")
    finally:
        monkeypatch.undo()
        time.tzset()
    written = dt.datetime.strptime(lines()[0]["time"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=dt.UTC)
    assert abs(dt.datetime.now(tz=dt.UTC) - written) < dt.timedelta(minutes=5)


@pytest.mark.parametrize("outcomes", [(), (WARNED,)], ids=["passed", "warned"])
def test_no_line_for_a_review_that_passes(
    log: Log, lines: Callable[[], list[dict[str, Any]]], outcomes: tuple[Outcome, ...]
) -> None:
    log.observe(evaluated(Verdict(REQUEST, outcomes)))
    assert lines() == []


@pytest.mark.parametrize(
    ("error", "uid", "level"),
    [
        pytest.param(UnacceptableError(413, "too\nlarge", "u", "admission.k8s.io/v1"), "u", "warning", id="with-uid"),
        pytest.param(UnattributableError(413, "too\nlarge"), None, "warning", id="without-uid"),
        pytest.param(UnattributableError(500, "too\nlarge"), None, "error", id="our-fault"),
    ],
)
def test_line_of_a_refusal(
    log: Log,
    lines: Callable[[], list[dict[str, Any]]],
    error: UnacceptableError | UnattributableError,
    uid: str | None,
    level: str,
) -> None:
    log.observe(Observation(Phase.VALIDATE, 0.1, "3f2a", error=error))
    (line,) = lines()
    assert (line["decision"], line.get("uid"), line["code"], line["error"], line["level"]) == (
        "failed",
        uid,
        error.code,
        r"too\nlarge",
        level,
    )


@pytest.mark.parametrize("outcome", [DENIED, PATCHED], ids=["denied", "patched"])
def test_no_content_of_the_object(log: Log, log_file: Path, outcome: Outcome) -> None:
    log.observe(evaluated(Verdict(REQUEST, (outcome,), operations=OPERATIONS)))
    assert b"canary" not in log_file.read_bytes()


def test_line_of_an_event(log: Log, lines: Callable[[], list[dict[str, Any]]]) -> None:
    log.event("error", "reload failed", file="policy.yaml", code=2)
    assert lines() == [
        {
            "time": "2026-11-21T08:30:00.250Z",
            "level": "error",
            "message": "reload failed",
            "file": "policy.yaml",
            "code": 2,
        }
    ]
