"""The responses of a gate without time, after a policy raises SystemExit, and when encoding fails."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.engine.config import OutOfTimeError, PolicyConfig
from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.findings import Patch, Skip, Stance, Violation
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import AnyContext, Policy, mutates, validates
from gpugate.webhook.admission.gate import Gate, Later, Rules
from gpugate.webhook.admission.response import LARGEST
from gpugate.webhook.admission.review import UnacceptableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field, Json
    from gpugate.webhook.admission.decisions import Observation
    from gpugate.webhook.admission.review import Review

PHASES = [pytest.param(Phase.MUTATE, id="mutate"), pytest.param(Phase.VALIDATE, id="validate")]


def now() -> dt.datetime:
    return dt.datetime(2026, 11, 21, tzinfo=dt.UTC)


def gate(*policies: Policy, observed: list[Observation] | None = None) -> Gate:
    rules = Rules(bind(policies, PolicyConfig()), "g")
    return Gate(rules, NoFacts(), now, (observed if observed is not None else []).append)


def finding(name: str, mode: Stance = Stance.ENFORCE) -> Policy:
    @validates(POD, mode=mode)
    def check(pod: Field, _: AnyContext) -> Iterator[Violation]:
        yield Violation(pod.path, "is a Pod")

    return Policy(name, "", (check,))


def raising(error: BaseException, mode: Stance = Stance.ENFORCE) -> Policy:
    @validates(POD, mode=mode)
    def check(_pod: Field, _ctx: AnyContext) -> Iterator[Violation]:
        raise error

    return Policy("pods/raises", "", (check,))


def patching(value: Json) -> Policy:
    @mutates(POD)
    def check(pod: Field, _: AnyContext) -> Iterator[Patch]:
        if not pod["metadata", "annotations"]:
            yield Patch("set", ("metadata", "annotations"), value, "adds it")

    return Policy("pods/patches", "", (check,))


def review(**members: Any) -> bytes:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}
    request = {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "object": pod,
    }
    envelope = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request | members}
    return json.dumps(envelope).encode()


def answered(gate: Gate, phase: Phase, body: bytes, seconds_left: float | None = None) -> dict[str, Any]:
    answer = gate.answer(phase, body, seconds_left)
    assert answer.status == 200
    review_response: dict[str, Any] = json.loads(answer.body)["response"]
    return review_response


class TestOutOfTime:
    def test_validating_denies_with_a_hint(self) -> None:
        review_response = answered(gate(finding("pods/slow")), Phase.VALIDATE, review(), 0)
        status = review_response["status"]
        assert (review_response["allowed"], status["code"], status["reason"]) == (False, 504, "Timeout")
        assert status["message"] == (
            "out of time after 0.0 s, in pods/slow: apply the object again; "
            "if that fails too, make it smaller or raise timeoutSeconds of the webhook"
        )

    def test_mutating_changes_nothing_and_warns(self) -> None:
        review_response = answered(gate(patching({"a": "b"})), Phase.MUTATE, review(), 0)
        assert (review_response["allowed"], "patch" in review_response) == (True, False)
        assert review_response["warnings"][0].startswith(
            "[gpugate] not mutated: out of time after 0.0 s, in pods/patches: apply"
        )

    @pytest.mark.parametrize("seconds_left", [None, 60.0])
    def test_there_is_enough_time(self, seconds_left: float | None) -> None:
        review_response = answered(gate(finding("pods/quick")), Phase.VALIDATE, review(), seconds_left)
        assert review_response["status"]["code"] == 403

    def test_a_kind_without_policies_is_allowed(self) -> None:
        kind = {"group": "", "version": "v1", "kind": "Foo"}
        body = review(kind=kind, object={"kind": "Foo", "apiVersion": "v1"})
        assert answered(gate(finding("pods/slow")), Phase.VALIDATE, body, 0)["allowed"]

    def test_it_is_observed(self) -> None:
        observed: list[Observation] = []
        gate(finding("pods/slow"), observed=observed).answer(Phase.VALIDATE, review(), 0)
        (one,) = observed
        assert (one.generation, one.error and one.error.code, one.review and one.review.uid) == ("g", 504, "u")


ERRORS = [KeyError("k"), TypeError(), RecursionError(), MemoryError(), SystemExit(3), SystemExit("canary")]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
class TestBrokenPolicy:
    def test_an_enforcing_policy_that_breaks_denies_and_is_named(self, error: BaseException) -> None:
        status = answered(gate(raising(error)), Phase.VALIDATE, review())["status"]
        assert (status["code"], "[pods/raises] could not evaluate this object" in status["message"]) == (500, True)

    def test_a_warning_policy_that_breaks_warns(self, error: BaseException) -> None:
        review_response = answered(gate(raising(error, Stance.WARN)), Phase.VALIDATE, review())
        assert (review_response["allowed"], "[pods/raises] failed" in review_response["warnings"][0]) == (True, True)


@pytest.mark.parametrize("phase", PHASES)
def test_even_an_interrupt_is_answered(phase: Phase) -> None:
    review_response = answered(gate(raising(KeyboardInterrupt())), phase, review())
    assert review_response["allowed"] is (phase is Phase.MUTATE)


NO_JSON = [
    pytest.param({"a": float("nan")}, id="nan"),
    pytest.param({"a": float("inf")}, id="infinity"),
    pytest.param({"a": b"bytes"}, id="bytes"),
    pytest.param({"a": now()}, id="date"),
    pytest.param({"a": {1, 2}}, id="set"),
    pytest.param({"a": "\ud800"}, id="lone-surrogate"),
    pytest.param({"a": 2**80}, id="beyond-64-bits"),
    pytest.param({1: "a"}, id="key-a-number"),
]


@pytest.mark.parametrize("value", NO_JSON)
def test_a_patch_that_json_cannot_represent_is_not_sent(value: Any) -> None:
    review_response = answered(gate(patching(value)), Phase.MUTATE, review())
    assert (
        review_response["uid"],
        review_response["allowed"],
        "patch" in review_response,
        len(review_response["warnings"]),
    ) == ("u", True, False, 1)


def test_a_patch_that_is_nested_too_deeply_is_not_sent() -> None:
    value: Json = "a"
    for _ in range(300):
        value = [value]
    review_response = answered(gate(patching({"a": value})), Phase.MUTATE, review())
    assert (review_response["allowed"], "patch" in review_response) == (True, False)


def test_a_patch_that_is_too_large_is_not_sent() -> None:
    review_response = answered(gate(patching({"a": "x" * LARGEST})), Phase.MUTATE, review())
    assert (review_response["allowed"], "patch" in review_response, review_response["warnings"]) == (
        True,
        False,
        ["[gpugate] not mutated: the patch is larger than 1 MiB"],
    )
    assert review_response["auditAnnotations"] == {"generation": "g", "not-mutated": "pods/patches"}


@pytest.mark.parametrize("phase", PHASES)
def test_a_response_that_cannot_be_encoded_becomes_an_error(phase: Phase, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bytes:
        raise ValueError

    monkeypatch.setattr("gpugate.webhook.admission.gate.encode", broken)
    review_response = answered(gate(finding("pods/x")), phase, review())
    assert (review_response["uid"], review_response["allowed"], review_response["auditAnnotations"]) == (
        "u",
        phase is Phase.MUTATE,
        {"generation": "g"},
    )


@pytest.mark.parametrize("phase", PHASES)
def test_an_internal_decoding_error_is_attributed_by_the_head(phase: Phase, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: bytes) -> Review:
        raise MemoryError

    monkeypatch.setattr("gpugate.webhook.admission.gate.decode", broken)
    review_response = answered(gate(finding("pods/x")), phase, review())
    assert (review_response["uid"], review_response["allowed"]) == ("u", phase is Phase.MUTATE)


def test_a_too_large_review_is_observed_with_its_uid() -> None:
    observed: list[Observation] = []
    gate(observed=observed).too_large(Phase.VALIDATE, review()[:512])
    (one,) = observed
    assert isinstance(one.error, UnacceptableError)
    assert (one.generation, one.error.code, one.error.uid) == ("g", 413, "u")


ANY_KIND = {"group": "example.org", "version": "v1", "kind": "Thing"}
ALLOWED = [
    pytest.param({"kind": ANY_KIND, "object": {"a": 1}}, id="unknown-kind"),
    pytest.param({"kind": ANY_KIND, "operation": "CONNECT", "object": None}, id="connect-without-object"),
    pytest.param({"subResource": "foo"}, id="unknown-subresource"),
    pytest.param({"kind": ANY_KIND, "operation": "DELETE", "object": None, "oldObject": {}}, id="empty-old-object"),
    pytest.param({"kind": {"group": "", "version": "v1", "kind": "List"}, "object": {"items": []}}, id="list"),
    pytest.param({"kind": {"group": "", "version": "v1", "kind": "Binding"}, "object": {"a": {}}}, id="binding"),
]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("members", ALLOWED)
def test_a_kind_without_a_rule_is_allowed(members: dict[str, Any], phase: Phase) -> None:
    review_response = answered(gate(finding("pods/x"), patching({"a": "b"})), phase, review(**members))
    assert review_response == {"uid": "u", "allowed": True, "auditAnnotations": {"generation": "g"}}


def test_the_path_decides_what_is_answered() -> None:
    both = gate(finding("pods/x"), patching({"a": "b"}))
    mutating, validating = (answered(both, phase, review()) for phase in (Phase.MUTATE, Phase.VALIDATE))
    assert (mutating["allowed"], "patch" in mutating, validating["allowed"], "patch" in validating) == (
        True,
        True,
        False,
        False,
    )


def test_a_repeated_uid_is_evaluated_again() -> None:
    observed: list[Observation] = []
    same = gate(finding("pods/x"), observed=observed)
    answers = [same.validate(review()) for _ in range(2)]
    assert (answers[0], len(observed)) == (answers[1], 2)


def test_a_new_ruleset_applies_from_the_next_review() -> None:
    used = gate(finding("pods/x"))
    used.use(Rules(bind((), PolicyConfig()), "h"))
    review_response = answered(used, Phase.VALIDATE, review())
    assert (used.rules.generation, review_response["allowed"], review_response["auditAnnotations"]) == (
        "h",
        True,
        {"generation": "h"},
    )


def test_a_review_keeps_its_ruleset() -> None:
    other = Rules(bind((), PolicyConfig()), "h")

    @validates(POD)
    def swaps(pod: Field, _: AnyContext) -> Iterator[Violation]:
        used.use(other)
        yield Violation(pod.path, "is a Pod")

    used = gate(Policy("pods/swaps", "", (swaps,)), finding("pods/x"))
    review_response = answered(used, Phase.VALIDATE, review())
    assert review_response["auditAnnotations"] == {"generation": "g", "deny": "pods/swaps,pods/x"}


@pytest.mark.parametrize("phase", PHASES)
def test_time_that_expires_outside_a_policy_names_none(phase: Phase, monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_time(*_: object) -> bytes:
        raise OutOfTimeError

    monkeypatch.setattr("gpugate.webhook.admission.gate.encode", out_of_time)
    review_response = answered(gate(finding("pods/x")), phase, review())
    message = review_response["status"]["message"] if phase is Phase.VALIDATE else review_response["warnings"][0]
    assert "out of time after 0.0 s: apply the object again" in message


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("may_wait", [True, False])
def test_only_a_mutating_review_that_may_wait_waits_for_data(phase: Phase, may_wait: bool) -> None:  # noqa: FBT001 -- a table's column
    @validates(POD)
    def misses_data(_pod: Field, _: AnyContext) -> Iterator[Skip]:
        yield Skip("not known yet", coming=True)

    @mutates(POD)
    def misses_data_too(_pod: Field, _: AnyContext) -> Iterator[Skip]:
        yield Skip("not known yet", coming=True)

    waits = gate(Policy("pods/waits", "", (misses_data, misses_data_too)))
    answer = waits.try_answer(phase, review(), None, may_wait=may_wait, only_quick=False)
    assert (answer is Later.DATA) is (may_wait and phase is Phase.MUTATE)
    assert answered(waits, phase, review())["allowed"]
