"""What the engine keeps of policies that read a value of a template, which is not known."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.field import Unknown
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Violation
from gpugate.policies.sdk.objects import POD, GroupVersionKind, Operation, Request
from gpugate.policies.sdk.policy import AnyContext, Policy, mutates, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.field import Field

DOC = "Pod.\n\n## Why is this bad?\nIt is.\n"


@validates(POD)
def in_turn(pod: Field, _: AnyContext) -> Iterator[Violation]:
    for container in pod["spec", "containers"]:
        if container["image"].text == "bad":
            yield Violation(container["image"].path, "image is bad", fix=Patches((_moved(container),)))


@validates(POD)
def elsewhere(pod: Field, _: AnyContext) -> Iterator[Violation | Skip]:
    yield Violation(pod["metadata", "name"].path, "is named")
    yield Skip("no Namespaces to look up")


@mutates(POD)
def copies(pod: Field, _: AnyContext) -> Iterator[Patch]:
    if not pod["metadata", "annotations", "copied"]:
        yield Patch("set", ("metadata", "annotations", "copied"), "yes", "adds an annotation")
        yield Patch(
            "set", ("metadata", "annotations", "team"), pod["metadata", "labels", "team"].text, "copies the label"
        )


def _moved(container: Field) -> Patch:
    return Patch("set", ("spec", "first"), {**container.mapping}, "moves the container")


def verdict_on(*images: object, kind: str = "Pod") -> Verdict:
    spec = {"containers": [{"name": "a", "image": image, "tty": Unknown("${TTY}")} for image in images]}
    pod = {"metadata": {"name": "p", "labels": {"team": Unknown("${TEAM}")}}, "spec": spec}
    obj = pod if kind == "Pod" else {"metadata": {"name": "d"}, "spec": {"template": pod}}
    policies = [Policy(f"pods/{each.run.__name__}", DOC, (each,)) for each in (copies, in_turn, elsewhere)]
    group = "" if kind == "Pod" else "apps"
    request = Request(GroupVersionKind(group, "v1", kind), Operation.CREATE, obj, is_template=True)  # type: ignore[arg-type] # values in the place of JSON
    return evaluate(bind(policies, PolicyConfig()), request, NoFacts(), today=dt.date(2026, 1, 1))


def found(verdict: Verdict) -> dict[str, list[str]]:
    return {outcome.policy: [finding.message for finding in outcome.findings] for outcome in verdict.outcomes}


def test_what_was_found_before_the_value_is_kept_and_the_rest_is_not_evaluated() -> None:
    verdict = verdict_on("bad", Unknown("${IMAGE}"), "bad")

    assert found(verdict)["pods/in_turn"] == ["image is bad"]
    assert [outcome.skipped for outcome in verdict.outcomes] == [
        ("the value of placeholder ${TEAM} is unknown",),
        ("the value of placeholder ${IMAGE} is unknown",),
        ("no Namespaces to look up",),
    ]
    assert not any(outcome.error for outcome in verdict.outcomes)


def test_a_policy_that_does_not_read_the_value_finds_all() -> None:
    assert found(verdict_on("bad", "bad")) == {
        "pods/copies": [],
        "pods/in_turn": ["image is bad"] * 2,
        "pods/elsewhere": ["is named"],
    }


@validates(POD)
def demands(pod: Field, _: AnyContext) -> Iterator[Violation]:
    if not pod["metadata", "annotations", "team"]:
        yield Violation(pod["metadata"].path, "has no team")


def test_a_policy_that_might_have_changed_the_object_does_not_check_it() -> None:
    both = Policy("pods/team", DOC, (copies, demands))
    pod = {"metadata": {"name": "p", "labels": {"team": Unknown("${TEAM}")}}}
    request = Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, pod, is_template=True)  # type: ignore[arg-type] # as above

    (outcome,) = evaluate(bind([both], PolicyConfig()), request, NoFacts(), today=dt.date(2026, 1, 1)).outcomes

    assert (outcome.findings, bool(outcome.skipped)) == ((), True)


def test_a_patch_before_the_value_is_made() -> None:
    verdict = verdict_on("good")

    assert [operation["path"] for operation in verdict.operations] == ["/metadata/annotations"]


def test_a_fix_has_the_placeholder_and_not_the_value() -> None:
    (_, outcome, _) = verdict_on("bad").outcomes
    fix = outcome.findings[0].fix

    assert isinstance(fix, Patches)
    assert fix.patches[0].value == {"name": "a", "image": "bad", "tty": "${TTY}"}


def test_a_template_of_a_workload_is_read_the_same_way() -> None:
    verdict = verdict_on("bad", Unknown("${IMAGE}"), kind="Deployment")

    assert found(verdict)["pods/in_turn"] == ["image is bad"]
    assert verdict.malformed == ()


@mutates(POD)
def moves(pod: Field, _: AnyContext) -> Iterator[Patch]:
    if not pod["spec", "first"]:
        yield from (_moved(container) for container in pod["spec", "containers"])


def test_a_patch_has_the_placeholder_and_not_the_value() -> None:
    pod = {"spec": {"containers": [{"name": "a", "tty": Unknown("${TTY}")}]}}
    request = Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, pod, is_template=True)  # type: ignore[arg-type] # as above

    verdict = evaluate(
        bind([Policy("pods/moves", DOC, (moves,))], PolicyConfig()), request, NoFacts(), today=dt.date(2026, 1, 1)
    )

    assert [operation["value"] for operation in verdict.operations] == [{"name": "a", "tty": "${TTY}"}]
