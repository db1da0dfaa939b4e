from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.verdict import Finding, Outcome, Verdict
from gpugate.policies.sdk.findings import Patch, Stance, Violation
from gpugate.policies.sdk.kinds import GroupVersionKind
from gpugate.policies.sdk.request import Operation, Request
from gpugate.webhook.admission.errors import UnacceptableError, UnattributableError
from gpugate.webhook.admission.gate import Observation
from gpugate.webhook.admission.review import Review
from gpugate.webhook.admission.telemetry import LOGGER, log

if TYPE_CHECKING:
    from collections.abc import Callable

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
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, LOGGER)
    return lambda: caplog.messages


def judged(verdict: Verdict, phase: Phase = Phase.VALIDATE) -> Observation:
    return Observation(phase, 0.0012345, Review("u", "admission.k8s.io/v1", REQUEST), verdict)


@pytest.mark.parametrize(
    ("observation", "decision", "policies"),
    [
        pytest.param(judged(Verdict(REQUEST, (DENIED, WARNED))), "denied", ["pods/x"], id="denied"),
        pytest.param(
            judged(Verdict(REQUEST, (PATCHED,), operations=OPERATIONS), Phase.MUTATE),
            "patched",
            ["pods/y"],
            id="patched",
        ),
        pytest.param(judged(Verdict(REQUEST, malformed=(Violation((), "m"),))), "malformed", [], id="malformed"),
        pytest.param(judged(Verdict(REQUEST, (BROKEN,))), "broke", ["pods/z"], id="broke"),
    ],
)
def test_line(lines: Callable[[], list[str]], observation: Observation, decision: str, policies: list[str]) -> None:
    log(observation)
    (line,) = map(json.loads, lines())
    assert (line["decision"], line["policies"], line["uid"], line["milliseconds"]) == (decision, policies, "u", 1.234)


@pytest.mark.parametrize("outcomes", [(), (WARNED,)], ids=["passed", "warned"])
def test_no_line_for_what_goes_through(lines: Callable[[], list[str]], outcomes: tuple[Outcome, ...]) -> None:
    log(judged(Verdict(REQUEST, outcomes)))
    assert lines() == []


@pytest.mark.parametrize(
    ("error", "uid"),
    [
        pytest.param(UnacceptableError(413, "too\nlarge", "u", "admission.k8s.io/v1"), "u", id="with-uid"),
        pytest.param(UnattributableError(413, "too\nlarge"), None, id="without-uid"),
    ],
)
def test_line_of_a_refusal(lines: Callable[[], list[str]], error: UnacceptableError, uid: str | None) -> None:
    log(Observation(Phase.VALIDATE, 0.1, error=error))
    (line,) = map(json.loads, lines())
    assert (line["decision"], line.get("uid"), line["code"], line["error"]) == ("refused", uid, 413, r"too\nlarge")


def test_names_are_escaped_and_cut(lines: Callable[[], list[str]]) -> None:
    log(judged(Verdict(REQUEST, (DENIED,))))
    (line,) = map(json.loads, lines())
    assert (line["name"], len(line["user"])) == (r"a-\n\x1b[31m*", 253)


@pytest.mark.parametrize("outcome", [DENIED, PATCHED], ids=["denied", "patched"])
def test_93_no_content_of_the_object(lines: Callable[[], list[str]], outcome: Outcome) -> None:
    log(judged(Verdict(REQUEST, (outcome,), operations=OPERATIONS)))
    assert "canary" not in lines()[0]
