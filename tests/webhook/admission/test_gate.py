from __future__ import annotations

import datetime as dt
import json
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.engine.config import Exemption, PolicyConfig
from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.findings import Patch, Violation
from gpugate.policies.sdk.objects import DEPLOYMENT, POD
from gpugate.policies.sdk.policy import AnyContext, Policy, mutates, validates
from gpugate.webhook.admission.gate import Answer, Gate, Rules
from gpugate.webhook.admission.review import HEAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.webhook.admission.decisions import Observation

CANARY = "do-not-tell-this"


@validates(POD, DEPLOYMENT)
def _named_bad(thing: Field, _: AnyContext) -> Iterator[Violation]:
    label = thing["metadata", "labels", "bad"]
    if label:
        yield Violation(label.path, "is bad", hint="take it away")


@mutates(POD)
def _labels(pod: Field, _: AnyContext) -> Iterator[Patch]:
    label = pod["metadata", "labels", "seen"]
    if not label:
        yield Patch("set", label.path, "yes", "adds a label")


@validates(POD)
def _breaks(pod: Field, _: AnyContext) -> Iterator[Violation]:
    if pod["metadata", "labels", "breaks"]:
        raise ValueError(CANARY)
    yield from ()


POLICIES = (
    Policy("pods/bad-label", "", (_named_bad,)),
    Policy("pods/seen", "", (_labels,)),
    Policy("pods/breaks", "", (_breaks,)),
)


def now() -> dt.datetime:
    return dt.datetime(2026, 11, 21, tzinfo=dt.UTC)


def rules() -> Rules:
    return Rules(bind(POLICIES, PolicyConfig()), "g")


@pytest.fixture
def gate() -> Gate:
    return Gate(rules(), NoFacts(), now)


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
    return json.dumps(envelope).encode()


def response(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200
    review_response: dict[str, Any] = json.loads(answer.body)["response"]
    return review_response


def test_mutate_patches(gate: Gate) -> None:
    review_response = response(gate.mutate(review()))
    assert (review_response["allowed"], review_response["patchType"], review_response["auditAnnotations"]) == (
        True,
        "JSONPatch",
        {"generation": "g", "mutate": "pods/seen"},
    )


def test_validate_denies(gate: Gate) -> None:
    review_response = response(gate.validate(review({"bad": "1"})))
    message = "[pods/bad-label] metadata.labels.bad: is bad; take it away"
    assert (review_response["allowed"], review_response["status"]["message"]) == (False, message)


def test_validate_allows(gate: Gate) -> None:
    assert response(gate.validate(review())) == {"uid": "u", "allowed": True, "auditAnnotations": {"generation": "g"}}


def test_an_exemption_holds_by_the_clock() -> None:
    expires = dt.date(2026, 11, 20)
    exemption = Exemption(policies=("pods/bad-label",), reason="INC-1", owner="platform", expires=expires)
    bound = Rules(bind(POLICIES, PolicyConfig(exemptions=(exemption,))), "g")
    earlier = Gate(bound, NoFacts(), lambda: now() - dt.timedelta(days=1))
    later = Gate(bound, NoFacts(), now)
    allowed = [response(gate.validate(review({"bad": "1"})))["allowed"] for gate in (earlier, later)]
    assert allowed == [True, False]


def test_a_broken_policy_denies_and_is_named(gate: Gate) -> None:
    review_response = response(gate.validate(review({"breaks": "1"})))
    assert (review_response["allowed"], review_response["status"]["code"], review_response["auditAnnotations"]) == (
        False,
        500,
        {"generation": "g", "error": "pods/breaks"},
    )
    assert CANARY not in json.dumps(review_response)


@pytest.mark.parametrize(
    ("phase", "allowed"), [(Phase.MUTATE, True), (Phase.VALIDATE, False)], ids=["mutate", "validate"]
)
class TestRefused:
    def test_unacceptable(self, gate: Gate, phase: Phase, allowed: bool) -> None:  # noqa: FBT001 -- a table's column
        review_response = response(gate.answer(phase, review(operation="PATCH")))
        assert (review_response["uid"], review_response["allowed"], "patch" in review_response) == ("u", allowed, False)

    def test_too_large(self, gate: Gate, phase: Phase, allowed: bool) -> None:  # noqa: FBT001 -- a table's column
        head = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",'.ljust(HEAD)
        review_response = response(gate.too_large(phase, head))
        assert (review_response["uid"], review_response["allowed"]) == ("u", allowed)
        # No ruleset has read it.
        assert "auditAnnotations" not in review_response

    def test_an_internal_error(self, phase: Phase, allowed: bool) -> None:  # noqa: FBT001 -- a table's column
        def broken_clock() -> dt.datetime:
            raise RuntimeError(CANARY)

        review_response = response(Gate(rules(), NoFacts(), broken_clock).answer(phase, review()))
        assert (review_response["allowed"], CANARY in json.dumps(review_response)) == (allowed, False)
        assert allowed or review_response["status"]["code"] == 500


def test_without_a_uid_the_answer_is_an_http_error(gate: Gate) -> None:
    answer = gate.validate(b"{}")
    assert (answer.status, json.loads(answer.body)["kind"]) == (400, "Status")


@pytest.fixture
def observed() -> list[Observation]:
    return []


@pytest.mark.parametrize(
    ("body", "judged", "refused"),
    [
        pytest.param(review(), True, False, id="judged"),
        pytest.param(review(operation="PATCH"), False, True, id="unacceptable"),
        pytest.param(b"", False, True, id="no-review"),
    ],
)
def test_every_review_is_observed_once(
    observed: list[Observation],
    body: bytes,
    judged: bool,  # noqa: FBT001 -- a table's column
    refused: bool,  # noqa: FBT001 -- a table's column
) -> None:
    Gate(rules(), NoFacts(), now, observed.append).validate(body)
    # The clock began long before.
    assert all(0 <= o.seconds < min(60, perf_counter()) for o in observed)
    assert [(o.verdict is not None, o.error is not None) for o in observed] == [(judged, refused)]


def test_an_error_of_the_observer_is_ignored() -> None:
    def observe(_: Observation) -> None:
        raise OSError

    assert response(Gate(rules(), NoFacts(), now, observe).validate(review()))["allowed"]


def test_templates_only_warn(gate: Gate) -> None:
    template = {"metadata": {"labels": {"bad": "1"}}, "spec": {}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": {"template": template}}
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    review_response = response(gate.validate(review(kind=kind, object=deployment)))
    assert (review_response["allowed"], len(review_response["warnings"])) == (True, 1)


def test_captured_exec_is_allowed(gate: Gate, captured: Callable[[str], bytes]) -> None:
    assert response(gate.mutate(captured("pod-exec-connect.mutate"))).keys() == {"uid", "allowed", "auditAnnotations"}
