"""Which exemptions lowered a finding, which are unused, and which have expired."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.engine.config import Exemption, PolicyConfig, parse_config
from gpugate.policies.engine.enforcement import ExemptionUse, bound_to_people, expired, is_left_alone, unused
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.objects import POD, GroupVersionKind, Operation, Request
from gpugate.policies.sdk.policy import AnyContext, Policy, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

TODAY = dt.date(2026, 11, 21)


def exemption(*policies: str, expires: dt.date = TODAY, **limits: tuple[str, ...]) -> Exemption:
    return Exemption(policies=policies or ("*",), reason="migrating", owner="platform", expires=expires, **limits)


@validates(POD)
def labelled(pod: Field, _ctx: AnyContext) -> Iterator[Violation]:
    if not pod["metadata", "labels"]:
        yield Violation(pod["metadata"].path, "has no labels")


@validates(POD)
def named(pod: Field, _ctx: AnyContext) -> Iterator[Violation]:
    if pod["metadata", "name"].text == "bad":
        yield Violation(pod["metadata", "name"].path, "has a bad name")


CATALOG = (Policy("pods/labelled", "A policy.", (labelled,)), Policy("pods/named", "A policy.", (named,)))


def request(obj: dict[str, Any], **attributes: Any) -> Request:
    kind = GroupVersionKind.of("v1", attributes.pop("kind", "Pod"))
    return Request(kind, attributes.pop("operation", Operation.CREATE), obj, **{"namespace": "ml"} | attributes)


GOOD: dict[str, Any] = {"metadata": {"name": "good", "labels": {"team": "ml"}}}
PLAIN: dict[str, Any] = {"metadata": {"name": "good"}}
BAD: dict[str, Any] = {"metadata": {"name": "bad"}}
MALFORMED: dict[str, Any] = {**GOOD, "spec": {"containers": 3}}


@pytest.mark.parametrize(
    ("exemptions", "obj", "used"),
    [
        pytest.param((), PLAIN, set(), id="without exemptions"),
        pytest.param((exemption("pods/labelled"),), PLAIN, {0}, id="one that applies"),
        pytest.param((exemption("pods/labelled"),), GOOD, set(), id="one without a finding"),
        pytest.param((exemption("pods/named"),), PLAIN, set(), id="one of another policy"),
        pytest.param((exemption("pods/labelled", namespaces=("dev",)),), PLAIN, set(), id="one of another namespace"),
        pytest.param((exemption("pods/named"), exemption("pods/labelled")), PLAIN, {1}, id="the second of two"),
        pytest.param((exemption("pods/named"), exemption("pods/labelled")), BAD, {0, 1}, id="one for each policy"),
        pytest.param((exemption("*"), exemption("pods/labelled")), PLAIN, {0}, id="the first that applies"),
        pytest.param((exemption("*", expires=TODAY - dt.timedelta(1)), exemption("*")), PLAIN, {1}, id="expired"),
        pytest.param((exemption("*"), exemption("malformed")), MALFORMED, {1}, id="a field of the wrong type"),
        pytest.param((exemption("malformed"),), PLAIN, set(), id="no field of the wrong type"),
    ],
)
def test_an_exemption_is_used_by_the_findings_that_it_lowers(
    exemptions: tuple[Exemption, ...], obj: dict[str, Any], used: set[int]
) -> None:
    ruleset = bind(CATALOG, PolicyConfig(exemptions=exemptions))

    verdict = evaluate(ruleset, request(obj, name="good"), NoFacts(), today=TODAY)

    use = ExemptionUse(ruleset, TODAY)
    assert use.of(verdict) == used
    assert [use.place_of(each) for each in ruleset.config.exemptions] == list(range(len(exemptions)))


def test_a_finding_with_the_note_of_an_update_uses_no_exemption() -> None:
    ruleset = bind(CATALOG, PolicyConfig(exemptions=(exemption("pods/named"),)))

    verdict = evaluate(ruleset, request(PLAIN, operation=Operation.UPDATE, old_object=PLAIN), NoFacts(), today=TODAY)

    assert [finding.note for finding in verdict.findings] == ["the object had this before the update"]
    assert ExemptionUse(ruleset, TODAY).of(verdict) == set()


UNUSED = {
    "an exemption without limits": (
        exemption("pods/a", "pods/b"),
        "pods/a, pods/b: applies to no finding (platform: migrating)",
    ),
    "one with limits": (
        exemption("pods/*", kinds=("Pod", "Job"), namespaces=("ml",), names=("a-*",)),
        "pods/* for kinds Pod, Job; namespaces ml; names a-*: applies to no finding (platform: migrating)",
    ),
    "one with a single limit": (
        exemption("pods/*", names=("a-*", "b-*")),
        "pods/* for names a-*, b-*: applies to no finding (platform: migrating)",
    ),
}


@pytest.mark.parametrize(("exempted", "said"), UNUSED.values(), ids=UNUSED)
def test_an_exemption_that_lowered_no_finding_is_named_with_its_limits(exempted: Exemption, said: str) -> None:
    assert list(unused((exempted,), TODAY, ())) == [said]


@pytest.mark.parametrize(
    ("exempted", "used"),
    [
        pytest.param(exemption("pods/a"), {0}, id="it lowered a finding"),
        pytest.param(exemption("pods/a", expires=TODAY - dt.timedelta(1)), (), id="it has expired"),
        pytest.param(exemption("pods/a", users=("anna",)), (), id="it names a user"),
        pytest.param(exemption("pods/a", groups=("admins",)), (), id="it names a group"),
    ],
)
def test_no_other_exemption_is_called_unused(exempted: Exemption, used: Any) -> None:
    assert list(unused((exempted,), TODAY, used)) == []
    # One place is one exemption.
    assert len(list(unused((exempted, exemption("pods/a")), TODAY, used))) == 1


@pytest.mark.parametrize(
    ("policies", "looked", "is_unused"),
    [
        pytest.param(("pods/a",), {"pods/a": True, "pods/b": False}, True, id="its policy had all data"),
        pytest.param(("pods/a",), {"pods/a": False, "pods/b": True}, False, id="its policy had not"),
        pytest.param(("pods/a",), {"pods/b": True}, False, id="its policy was not run"),
        pytest.param(("pods/*",), {"pods/a": True, "pods/b": False}, False, id="one of its policies had not"),
        pytest.param(
            ("pods/a", "scaling/*"), {"pods/a": True, "nodepools/a": True}, True, id="one of its names was run"
        ),
        pytest.param(("pods/a",), {}, False, id="no policy was run"),
    ],
)
def test_unused_is_said_only_where_its_policies_had_the_data(
    policies: tuple[str, ...],
    looked: dict[str, bool],
    is_unused: bool,  # noqa: FBT001 -- a table's column
) -> None:
    assert bool(list(unused((exemption(*policies),), TODAY, (), looked))) is is_unused


def test_an_exemption_expires_at_the_end_of_its_day() -> None:
    yesterday = exemption("pods/a", expires=TODAY - dt.timedelta(1), names=("a",))
    assert list(expired((yesterday, exemption("pods/b")), TODAY)) == [
        "pods/a for names a: expired on 2026-11-20 (platform: migrating)"
    ]


@pytest.mark.parametrize(
    ("exempted", "count"),
    [
        pytest.param(exemption(users=("anna",)), 1, id="users"),
        pytest.param(exemption(groups=("admins",)), 1, id="groups"),
        pytest.param(exemption(users=("anna",), groups=("admins",)), 1, id="both"),
        pytest.param(exemption(), 0, id="anybody"),
        pytest.param(exemption(users=("anna",), expires=TODAY - dt.timedelta(1)), 0, id="expired"),
    ],
)
def test_exemptions_of_users_and_groups_are_counted(exempted: Exemption, count: int) -> None:
    assert bound_to_people((exempted, exempted), TODAY) == 2 * count


@pytest.mark.parametrize(
    ("groups", "matches"),
    [(("admins", "team-*"), True), (("team-*",), True), (("admins",), False), (("*",), True)],
)
def test_one_group_of_the_user_has_to_match(groups: tuple[str, ...], matches: bool) -> None:  # noqa: FBT001 -- a table's column
    ruleset = bind(CATALOG, PolicyConfig(exemptions=(exemption(groups=groups),)))
    for names in (("system:authenticated", "team-ml"), ("team-ml",)):
        assert evaluate(ruleset, request(PLAIN, groups=names), NoFacts(), today=TODAY).allowed is matches


def test_a_user_without_groups_matches_every_group_pattern_only() -> None:
    for groups, allowed in ((("*",), True), (("**",), False)):
        ruleset = bind(CATALOG, PolicyConfig(exemptions=(exemption(groups=groups),)))
        assert evaluate(ruleset, request(PLAIN, groups=()), NoFacts(), today=TODAY).allowed is allowed


MIRROR: dict[str, Any] = {"metadata": {"annotations": {"kubernetes.io/config.mirror": "a"}}}
KUBELET = {"user": "system:node:ip-10-0-0-1", "groups": ("system:nodes", "system:authenticated")}


@pytest.mark.parametrize(
    ("obj", "attributes", "skipped"),
    [
        pytest.param(MIRROR, KUBELET, True, id="a mirror Pod"),
        pytest.param(None, {**KUBELET, "old_object": MIRROR}, True, id="a deleted mirror Pod"),
        pytest.param(MIRROR, {"user": "anna"}, False, id="an annotation that a user wrote"),
        # A ServiceAccount cannot have this name, but a client certificate or an identity provider can give it.
        pytest.param(MIRROR, {**KUBELET, "groups": ("system:authenticated",)}, False, id="the name of a kubelet alone"),
        pytest.param(MIRROR, {**KUBELET, "user": "anna"}, False, id="the group of kubelets alone"),
        pytest.param(MIRROR, {**KUBELET, "kind": "ConfigMap"}, False, id="another kind"),
        pytest.param(GOOD, KUBELET, False, id="another Pod of a kubelet"),
        pytest.param({"metadata": {"annotations": ["a"]}}, KUBELET, False, id="annotations of another type"),
        pytest.param({"metadata": "a"}, KUBELET, False, id="metadata of another type"),
        pytest.param(None, KUBELET, False, id="without an object"),
        pytest.param(GOOD, {"namespace": "kube-system"}, True, id="an excluded namespace"),
    ],
)
def test_mirror_pods_and_excluded_namespaces_are_not_evaluated(
    obj: Any,
    attributes: dict[str, Any],
    skipped: bool,  # noqa: FBT001 -- a table's column
) -> None:
    assert is_left_alone(request(obj, **attributes), PolicyConfig()) is skipped


@pytest.mark.parametrize(
    ("pattern", "namespace", "mode"),
    [
        ("ml*", "ml-1", ["WARN"]),
        ("ml*", "apps", ["ENFORCE"]),
        ("ml*", "", ["ENFORCE"]),
        ("*", "ml-1", ["WARN"]),
        # Objects without a namespace have the mode of the policy.
        ("*", "", ["ENFORCE"]),
    ],
)
def test_a_pattern_of_a_namespace_sets_its_mode(pattern: str, namespace: str, mode: list[str]) -> None:
    namespaces = {pattern: {"policies": {"pods/*": {"mode": "warn"}}}}
    config = parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", "namespaces": namespaces})
    verdict = evaluate(bind(CATALOG, config), request(PLAIN, namespace=namespace), NoFacts(), today=TODAY)
    assert [finding.stance.name for finding in verdict.findings] == mode
