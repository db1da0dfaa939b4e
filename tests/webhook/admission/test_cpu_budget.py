"""A review that exceeds its CPU budget is stopped at any point, and the worker continues."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.engine.config import OutOfTimeError, PolicyConfig
from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import Known, derived
from gpugate.policies.sdk.findings import Patch, Violation
from gpugate.policies.sdk.objects import NAMESPACE, POD
from gpugate.policies.sdk.policy import AnyContext, Policy, mutates, validates
from gpugate.webhook.admission.cpu_budget import CpuBudget
from gpugate.webhook.admission.gate import Answer, Gate, Later, Rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.sdk.facts import Fact
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.admission.decisions import Observation

SECONDS = 0.05
# Many times the budget: a review that takes this long was not stopped.
LONG = 2.0


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@validates(POD)
def quadratic(_pod: Field, _ctx: AnyContext) -> Iterator[Violation]:
    burn(LONG)
    yield Violation((), "is slow")


@validates(POD)
def catches_everything(_pod: Field, _ctx: AnyContext) -> Iterator[Violation]:
    for _ in range(1000):
        with contextlib.suppress(Exception):
            burn(LONG / 1000)
    yield Violation((), "is slow")


@mutates(POD)
def slow_mutation(pod: Field, _ctx: AnyContext) -> Iterator[Patch]:
    burn(LONG)
    if not pod["metadata", "labels"]:
        yield Patch("set", ("metadata", "labels", "a"), "b", "adds a label")


@validates(POD)
def quick(_pod: Field, _ctx: AnyContext) -> Iterator[Violation]:
    yield Violation((), "is a Pod")


class Namespaces:
    def __init__(self) -> None:
        self._known = Known((), complete=True)

    def list(self, _kind: Kind, _namespace: str | None = None) -> Fact:
        return self._known


@validates(POD)
def derives_slowly(_pod: Field, ctx: AnyContext) -> Iterator[Violation]:
    known = ctx.facts.list(NAMESPACE)
    assert isinstance(known, Known)
    yield Violation((), derived(known, lambda _known, _ctx: burn(4 * SECONDS) or "is a Pod", ctx))


@pytest.fixture
def budget() -> Iterator[CpuBudget]:
    before = signal.getsignal(signal.SIGPROF)
    yield CpuBudget(SECONDS)
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def review() -> bytes:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    request = {"uid": "u", "kind": kind, "resource": resource, "operation": "CREATE", "object": pod}
    return json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}).encode()


def answered(budget: CpuBudget, phase: Phase, check: Any) -> dict[str, Any]:
    rules = Rules(bind((Policy("pods/own", "", (check,)),), PolicyConfig()), "g")
    gate = Gate(rules, Namespaces(), lambda: dt.datetime(2026, 11, 21, tzinfo=dt.UTC), budget=budget)
    answer = gate.answer(phase, review())
    review_response: dict[str, Any] = json.loads(answer.body)["response"]
    return review_response


def is_stopped(budget: CpuBudget) -> bool:
    """Burn CPU time until the budget expires; returns whether it did, and ends it as the gate does."""
    try:
        burn(LONG)
        budget.stop()
    except OutOfTimeError:
        # Not `pytest.raises`: what it does until it ends counts too, and the error would be raised again outside of it.
        budget.stop()
        return True
    return False


@pytest.mark.parametrize("check", [quadratic, catches_everything])
def test_a_slow_policy_is_stopped_and_the_request_is_denied(budget: CpuBudget, check: Any) -> None:
    started = time.thread_time()
    review_response = answered(budget, Phase.VALIDATE, check)
    assert time.thread_time() - started < LONG / 2
    assert (review_response["allowed"], review_response["status"]["code"]) == (False, 504)
    assert "pods/own" in review_response["status"]["message"]


def test_a_slow_mutation_is_stopped_and_patches_nothing(budget: CpuBudget) -> None:
    review_response = answered(budget, Phase.MUTATE, slow_mutation)
    assert (review_response["allowed"], "patch" in review_response) == (True, False)
    assert review_response["warnings"][0].startswith("[gpugate] not mutated: out of time")


def test_reviews_before_and_after_it_are_answered(budget: CpuBudget) -> None:
    codes = [
        answered(budget, Phase.VALIDATE, check)["status"]["code"]
        for check in (quick, quadratic, quick, quadratic, quick)
    ]
    assert codes == [403, 504, 403, 504, 403]


def test_nothing_is_raised_outside_a_review(budget: CpuBudget) -> None:
    for check in (quick, quadratic):
        answered(budget, Phase.VALIDATE, check)
        burn(4 * SECONDS)
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


@pytest.mark.parametrize("phase", Phase)
def test_only_quick_reviews_are_answered_if_another_process_takes_the_others(budget: CpuBudget, phase: Phase) -> None:
    seen: list[Observation] = []
    rules = Rules(bind((Policy("pods/own", "", (quadratic, slow_mutation)),), PolicyConfig()), "g")
    gate = Gate(rules, Namespaces(), lambda: dt.datetime(2026, 11, 21, tzinfo=dt.UTC), seen.append, budget)
    started = time.thread_time()
    later = gate.try_answer(phase, review(), None, may_wait=False, only_quick=True)
    # Less than the usual budget, and observed once: by the process that answers.
    assert (later, seen, time.thread_time() - started < LONG / 2) == (Later.CPU, [], True)
    assert isinstance(gate.try_answer(phase, review(), None, may_wait=False, only_quick=False), Answer)
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("given", "most"), [(None, SECONDS), (0.02, 0.02), (10 * SECONDS, SECONDS)], ids=["usual", "smaller", "larger"]
)
def test_a_budget_is_at_most_the_usual_one(budget: CpuBudget, given: float | None, most: float) -> None:
    before = time.thread_time()
    budget.start(given)
    end, after = budget._end, time.thread_time()
    budget.stop()
    assert end is not None
    assert before + most <= end <= after + most


def test_the_error_of_a_quick_review_is_its_answer(budget: CpuBudget) -> None:
    rules = Rules(bind((Policy("pods/own", "", (quick,)),), PolicyConfig()), "g")
    gate = Gate(rules, Namespaces(), lambda: dt.datetime(2026, 11, 21, tzinfo=dt.UTC), budget=budget)
    budget.start()
    assert is_stopped(budget)
    answer = gate.try_answer(Phase.VALIDATE, b"{", None, may_wait=False, only_quick=True)
    assert isinstance(answer, Answer)
    assert answer.status == 400


def test_values_derived_for_all_reviews_do_not_count(budget: CpuBudget) -> None:
    assert answered(budget, Phase.VALIDATE, derives_slowly)["status"]["code"] == 403


@pytest.mark.parametrize("where", ["start", "pause"])
def test_after_a_pause_the_rest_of_the_budget_remains(budget: CpuBudget, where: str) -> None:
    budget.start()
    with contextlib.nullcontext() if where == "start" else budget.paused():
        pass
    assert is_stopped(budget)


def test_a_pause_extends_the_budget_by_its_duration(budget: CpuBudget) -> None:
    budget.start()
    with budget.paused():
        burn(4 * SECONDS)
    burn(SECONDS / 2)
    started = time.thread_time()
    assert is_stopped(budget)
    assert time.thread_time() - started < 4 * SECONDS


def test_other_threads_do_not_use_the_budget(budget: CpuBudget) -> None:
    budget.start()
    thread = threading.Thread(target=burn, args=(4 * SECONDS,))
    thread.start()
    thread.join()
    budget.stop()
    assert not budget.is_spent


def test_the_time_of_other_threads_does_not_raise_the_error_again(budget: CpuBudget) -> None:
    spinning = threading.Event()
    thread = threading.Thread(target=lambda: burn(4 * SECONDS) if spinning.wait(60) else None)
    thread.start()
    budget.start()
    try:
        try:
            burn(LONG)
        except OutOfTimeError:
            # The timer expires many times while this thread waits and has no CPU time of its own.
            spinning.set()
            thread.join()
            budget.stop()
    except OutOfTimeError:
        budget.stop()
        pytest.fail("raised again")
    assert budget.is_spent


def test_an_interrupt_while_the_budget_is_stopped_leaves_nothing_behind() -> None:
    """Whenever the timer expires, nothing is raised after the second `stop`."""
    before = signal.getsignal(signal.SIGPROF)
    try:
        for step in range(40):
            _expire_around_stop(CpuBudget(0.001), 0.0005 + step * 0.0001)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _expire_around_stop(budget: CpuBudget, seconds: float) -> None:
    stop: Callable[[], None] = budget.stop
    try:
        budget.start()
        burn(seconds)
        stop()
    except OutOfTimeError:
        stop()
    burn(0.02)
