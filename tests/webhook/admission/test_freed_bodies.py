"""Reference counts alone free a body after any response, without a garbage collection."""

from __future__ import annotations

import datetime as dt
import gc
import json
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from api_server.library import FILES, example
from library_examples import ruleset_of

from gpugate.policies.engine.caught_error import release
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import AnyContext, Policy, validates
from gpugate.webhook.admission.cpu_budget import CpuBudget
from gpugate.webhook.admission.gate import Gate, Later, Rules
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.findings import Violation

HEAD = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","x":'


def now() -> dt.datetime:
    return dt.datetime(2026, 11, 21, tzinfo=dt.UTC)


@validates(POD)
def _raises(pod: Field, _: AnyContext) -> Iterator[Violation]:
    label = pod["metadata", "labels", "break"].text
    if label == "exit":
        raise SystemExit(3)
    if label == "interrupt":
        raise KeyboardInterrupt
    if label:
        try:
            int(label)
        except ValueError as error:
            kept = error
        # The frame refers to the exception, and the exception to its frame.
        raise KeyError(label) from kept
    yield from ()


@pytest.fixture
def gate() -> Gate:
    return Gate(Rules(bind((Policy("pods/raises", "", (_raises,)),), PolicyConfig()), "g"), NoFacts(), now)


def review(labels: dict[str, str] | None = None, **members: Any) -> bytes:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": labels or {}}, "spec": {}}
    request = {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "object": pod,
    }
    envelope = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request | members}
    return json.dumps(envelope, separators=(",", ":")).encode()


BODIES = [
    pytest.param(review(), id="allowed"),
    pytest.param(b"", id="empty"),
    pytest.param(b"{" + b" " * 10_000, id="cut"),
    pytest.param(HEAD + b"\xff", id="no-utf-8"),
    pytest.param(b"[1]", id="no-object"),
    pytest.param(b'{"kind":"Pod"}', id="no-review"),
    pytest.param(b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}', id="no-request"),
    pytest.param(review(uid=""), id="no-uid"),
    pytest.param(HEAD + b"[" * 300 + b"]" * 300 + b"}}", id="deep"),
    pytest.param(HEAD + b"[" * 2000 + b"]" * 2000 + b"}}", id="deeper-than-the-parser-reads"),
    pytest.param(HEAD + b"[" + b"1," * 600_000 + b"1]}}", id="more-values-than-are-read"),
    pytest.param(b" " * (33 << 20), id="too-large"),
    pytest.param(review(kind=5), id="member-of-another-type"),
    pytest.param(review(object=None), id="no-object-in-it"),
    pytest.param(review(namespace="a", object={"apiVersion": "v1", "kind": "Node"}), id="another-kind"),
    pytest.param(review({"break": "yes"}), id="policy-that-breaks"),
    pytest.param(review({"break": "exit"}), id="policy-that-exits"),
    pytest.param(review({"break": "interrupt"}), id="interrupted"),
]


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("phase", [Phase.MUTATE, Phase.VALIDATE], ids=["mutate", "validate"])
@pytest.mark.parametrize("seconds_left", [None, 0.0], ids=["in-time", "out-of-time"])
@pytest.mark.parametrize("body", BODIES)
def test_an_answer_keeps_nothing_of_the_body(gate: Gate, body: bytes, phase: Phase, seconds_left: float | None) -> None:
    # Objects that are created once, such as caches of a module, exist after the first response.
    gate.answer(phase, body, seconds_left)
    gc.collect()
    before = sys.getrefcount(body)
    gate.answer(phase, body, seconds_left)
    assert (sys.getrefcount(body), gc.collect()) == (before, 0)


@validates(POD)
def _takes_long(pod: Field, _: AnyContext) -> Iterator[Violation]:
    try:
        int(pod["metadata", "name"].text)
    except ValueError as error:
        # As above: the frame and the exception refer to each other.
        kept = error
    end = time.thread_time() + 1
    while time.thread_time() < end:
        pass
    assert kept
    yield from ()


@pytest.mark.usefixtures("uncollected")
def test_an_evaluation_that_another_process_repeats_keeps_nothing_of_the_body() -> None:
    before = signal.getsignal(signal.SIGPROF)
    rules = Rules(bind((Policy("pods/takes-long", "", (_takes_long,)),), PolicyConfig()), "g")
    gate = Gate(rules, NoFacts(), now, budget=CpuBudget())
    body = review()
    try:
        for _ in range(2):
            gc.collect()
            references = sys.getrefcount(body)
            later = gate.try_answer(Phase.VALIDATE, body, None, may_wait=False, only_quick=True)
            kept = sys.getrefcount(body) - references, gc.collect()
    finally:
        signal.signal(signal.SIGPROF, before)
    assert (later, kept) == (Later.CPU, (0, 0))


@pytest.mark.usefixtures("uncollected")
def test_a_response_that_fails_to_encode_keeps_nothing_of_the_body(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bytes:
        raise ValueError

    monkeypatch.setattr("gpugate.webhook.admission.gate.encode", broken)
    body = review()
    gate.answer(Phase.VALIDATE, body)
    gc.collect()
    before = sys.getrefcount(body)
    gate.answer(Phase.VALIDATE, body)
    assert (sys.getrefcount(body), gc.collect()) == (before, 0)


@pytest.mark.usefixtures("uncollected")
def test_no_example_of_the_library_leaves_anything_to_collect() -> None:
    def judge(name: str) -> None:
        evaluate(rulesets[name], examples[name].request, facts[name], today=now().date(), phase=Phase.BOTH)

    examples = {name: example(name) for name in FILES}
    rulesets = {name: ruleset_of(found.config) for name, found in examples.items()}
    facts = {
        name: RunFacts((*found.context, found.request), complete=found.complete) for name, found in examples.items()
    }
    for name in FILES:
        judge(name)
    gc.collect()
    # Collections ignore existing objects, so that a collection after each review is fast.
    gc.freeze()
    left = []
    for name in FILES:
        judge(name)
        if gc.collect():
            left.append(name)
    assert left == []


def test_released_exceptions_know_neither_frames_nor_each_other() -> None:
    def raised() -> Exception:
        try:
            try:
                int("x")
            except ValueError as first:
                raise KeyError from first
        except KeyError as second:
            return second

    error = raised()
    inner = error.__cause__
    assert inner is not None
    # A chain of exceptions with a cycle.
    inner.__cause__ = error
    release(error)
    references = [(each.__traceback__, each.__cause__, each.__context__) for each in (error, inner)]
    assert references == [(None, None, None)] * 2
