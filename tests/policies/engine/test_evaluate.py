from __future__ import annotations

import datetime as dt
import gc
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpugate.policies.engine.config import parse_config
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.engine.update_ratchet import Ratchet, keyed_path
from gpugate.policies.engine.verdict import Finding
from gpugate.policies.sdk.facts import Need, NoFacts
from gpugate.policies.sdk.findings import Other, Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import NAMES_ACCELERATOR
from gpugate.policies.sdk.objects import (
    DEVICE_CLASS,
    NODE_POOL,
    POD,
    POD_EPHEMERAL_CONTAINERS,
    GroupVersionKind,
    Operation,
    Request,
)
from gpugate.policies.sdk.policy import AnyContext, Policy, mutates, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.field import Field, Json, Path

TODAY = dt.date(2026, 11, 21)
TOLERATION: dict[str, Json] = {"key": "nvidia.com/gpu", "operator": "Exists"}
ANNOTATION = ("metadata", "annotations", "karpenter.sh/do-not-disrupt")


@validates(POD)
def named_bad(pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
    for container in pod["spec", "containers"]:
        if container["image"].text == "bad":
            yield Violation(container["image"].path, "image is bad")


@validates(POD_EPHEMERAL_CONTAINERS)
def debugs(pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
    for container in pod["spec", "ephemeralContainers"]:
        yield Violation(container.path, "is for debugging")


@validates(POD)
def at_most_warn(pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
    if pod["spec", "hostNetwork"].value is True:
        yield Violation(pod["spec", "hostNetwork"].path, "uses the host's network", at_most=Stance.WARN)


@validates(POD, at_most=Stance.WARN)
def advises(pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
    yield Violation(pod.path, str(1 // len(pod["metadata", "labels"].labels)))


@validates(POD)
def blind(_pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
    yield Skip("no Namespaces to look up")


@validates(POD)
def broken(pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
    yield Violation(pod.path, str(1 // len(pod["metadata", "labels"].labels)))


@mutates(POD)
def tolerate(pod: Field, _ctx: AnyContext) -> Iterator[Patch | Violation | Skip]:
    if not pod["spec", "tolerations"]:
        yield Patch("append", ("spec", "tolerations"), TOLERATION, "adds a toleration")


@mutates(POD)
def protect(pod: Field, _ctx: AnyContext) -> Iterator[Patch | Violation | Skip]:
    # Only once the toleration is there, so that the two need each other's result.
    if pod["spec", "tolerations"] and not pod[ANNOTATION]:
        yield Patch("set", ANNOTATION, "true", "adds an annotation")


@mutates(POD)
def name_it_one(pod: Field, _ctx: AnyContext) -> Iterator[Patch | Violation | Skip]:
    if pod["spec", "schedulerName"].text != "one":
        yield Patch("set", ("spec", "schedulerName"), "one", "sets the scheduler")


@mutates(POD)
def name_it_two(pod: Field, _ctx: AnyContext) -> Iterator[Patch | Violation | Skip]:
    if pod["spec", "schedulerName"].text != "two":
        yield Patch("set", ("spec", "schedulerName"), "two", "sets the scheduler")


@mutates(POD)
def restless(pod: Field, _ctx: AnyContext) -> Iterator[Patch | Violation | Skip]:
    count = len(list(pod["spec", "tolerations"]))
    yield Patch("append", ("spec", "tolerations"), {"key": str(count)}, "adds another")


@mutates(POD)
def misfit(_pod: Field, _ctx: AnyContext) -> Iterator[Patch | Violation | Skip]:
    yield Patch("set", ("kind", "x"), 1, "does not fit")


@mutates(POD)
def remarks(pod: Field, _ctx: AnyContext) -> Iterator[Patch | Violation | Skip]:
    yield Violation(pod["spec"].path, "is remarkable")
    if pod["spec", "schedulerName"].text != "remarkable":
        yield Patch("set", ("spec", "schedulerName"), "remarkable", "sets the scheduler")


HANDLERS = {
    "pods/named-bad": named_bad,
    "pods/debugs": debugs,
    "pods/at-most-warn": at_most_warn,
    "pods/advises": advises,
    "pods/blind": blind,
    "pods/broken": broken,
    "pods/protect": protect,
    "pods/tolerate": tolerate,
    "pods/name-it-one": name_it_one,
    "pods/name-it-two": name_it_two,
    "pods/restless": restless,
    "pods/misfit": misfit,
    "pods/remarks": remarks,
}


def pod(**spec: Json) -> dict[str, Json]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a", "image": "good"}], **spec},
    }


BAD: Json = [{"name": "a", "image": "bad"}]


def judge(
    *policies: str,
    obj: dict[str, Json] | None = None,
    old: dict[str, Json] | None = None,
    operation: Operation = Operation.CREATE,
    kind: str = "v1 Pod",
    phase: Phase = Phase.BOTH,
    ceiling: Stance = Stance.ENFORCE,
    user: str = "",
    groups: tuple[str, ...] = (),
    subresource: str = "",
    namespace: str = "apps",
    name: str = "p",
    generate_name: str = "",
    **config: Json,
) -> Verdict:
    catalog = [Policy(name, "A policy.", (HANDLERS[name],)) for name in policies]
    ruleset = bind(catalog, parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", **config}))
    request = Request(
        kind=GroupVersionKind.of(*kind.split(" ")),
        operation=operation,
        object=obj,
        old_object=old,
        name=name,
        generate_name=generate_name,
        namespace=namespace,
        user=user,
        groups=groups,
        subresource=subresource,
    )
    return evaluate(ruleset, request, NoFacts(), today=TODAY, phase=phase, template_ceiling=ceiling)


def deployment(**spec: Json) -> dict[str, Json]:
    template = {"metadata": {}, "spec": pod(**spec)["spec"]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": template}}


class TestCost:
    @pytest.mark.parametrize(
        ("mode", "denials", "warnings", "recorded"),
        [("enforce", 1, 0, 0), ("warn", 0, 1, 0), ("audit", 0, 0, 1), ("off", 0, 0, 0)],
    )
    def test_the_mode_says_what_a_finding_costs(self, mode: str, denials: int, warnings: int, recorded: int) -> None:
        verdict = judge("pods/named-bad", obj=pod(containers=BAD), policies={"pods/named-bad": {"mode": mode}})
        assert (len(verdict.denials), len(verdict.warnings), len(verdict.recorded)) == (denials, warnings, recorded)

    def test_a_finding_costs_no_more_than_it_may(self) -> None:
        verdict = judge("pods/at-most-warn", obj=pod(hostNetwork=True))
        assert verdict.allowed
        assert verdict.warnings == ("[pods/at-most-warn] spec.hostNetwork: uses the host's network",)

    @pytest.mark.parametrize("labels", [{"a": "b"}, {}], ids=["finds", "breaks"])
    def test_a_check_that_only_advises_refuses_nothing(self, labels: Json) -> None:
        verdict = judge("pods/advises", obj=pod() | {"metadata": {"name": "p", "labels": labels}})
        assert (verdict.allowed, len(verdict.warnings)) == (True, 1)

    def test_an_excluded_namespace_is_not_judged(self) -> None:
        assert judge("pods/named-bad", obj=pod(containers=BAD), namespace="kube-system").outcomes == ()

    def test_the_mode_of_a_namespace_beats_the_policys(self) -> None:
        namespaces: Json = {"apps": {"policies": {"pods/*": {"mode": "warn"}}}}
        assert judge("pods/named-bad", obj=pod(containers=BAD), namespaces=namespaces).allowed

    @pytest.mark.parametrize(("namespace", "allowed"), [("apps", True), ("apps-2", False), ("other", True)])
    @pytest.mark.parametrize("order", [("apps", "app*"), ("app*", "apps")], ids=" then ".join)
    def test_the_name_of_a_namespace_beats_a_pattern(
        self, order: tuple[str, ...], namespace: str, *, allowed: bool
    ) -> None:
        modes = {"apps": "warn", "app*": "enforce"}
        verdict = judge(
            "pods/named-bad",
            obj=pod(containers=BAD),
            namespace=namespace,
            policies={"pods/named-bad": {"mode": "audit"}},
            namespaces={name: {"policies": {"pods/*": {"mode": modes[name]}}} for name in order},
        )
        assert (verdict.allowed, len(verdict.warnings)) == (allowed, 1 if namespace == "apps" else 0)


class TestExemption:
    def exempt(self, user: str = "", name: str = "p", generate_name: str = "", **keys: Json) -> Verdict:
        exemption: dict[str, Json] = {
            "policies": ["pods/*"],
            "reason": "migrating",
            "owner": "platform",
            "expires": "2026-11-21",
        }
        both = ("pods/named-bad", "pods/at-most-warn")
        return judge(
            *both,
            obj=pod(containers=BAD),
            user=user,
            name=name,
            generate_name=generate_name,
            exemptions=[exemption | keys],
        )

    def test_it_records_what_it_lets_off_and_why(self) -> None:
        verdict = self.exempt()
        assert [f.note for f in verdict.recorded] == ["exempt until 2026-11-21: migrating"]
        assert verdict.allowed

    @pytest.mark.parametrize(
        "keys",
        [
            {"expires": "2026-11-20"},
            {"policies": ["pods/at-most-warn"]},
            {"kinds": ["NodePool"]},
            {"namespaces": ["team-*"]},
            {"names": ["q*"]},
            {"users": ["developer"]},
            {"groups": ["admins"]},
        ],
        ids=lambda keys: next(iter(keys)),
    )
    def test_it_lets_off_only_what_it_names(self, keys: dict[str, Json]) -> None:
        assert not self.exempt(user="somebody-else", **keys).allowed

    @given(
        generate_name=st.from_regex(r"[a-z]{1,3}-?", fullmatch=True), pattern=st.from_regex(r"[a-z]{0,3}-?\*?[a-z]?")
    )
    def test_a_name_that_is_not_known_yet_matches_no_name(self, generate_name: str, pattern: str) -> None:
        assume(pattern.strip("*"))
        assert not self.exempt(name="", generate_name=generate_name, names=[pattern, generate_name]).allowed
        assert self.exempt(name="", generate_name=generate_name, names=["*"]).allowed

    @given(generate_name=st.sampled_from(["", "legacy-pool", "legacy-"]))
    def test_what_a_name_would_be_generated_from_changes_nothing_beside_a_name(self, generate_name: str) -> None:
        assert not self.exempt(name="evil", generate_name=generate_name, names=["legacy-*", "legacy-pool"]).allowed
        assert self.exempt(name="legacy-pool", generate_name=generate_name, names=["legacy-pool"]).allowed


class TestMirrorPod:
    mirror = pod(containers=BAD) | {"metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}}

    def test_one_that_a_kubelet_sends_is_not_judged(self) -> None:
        assert judge("pods/named-bad", obj=self.mirror, user="system:node:a", groups=("system:nodes",)).allowed

    def test_the_annotation_alone_exempts_nothing(self) -> None:
        assert not judge("pods/named-bad", obj=self.mirror, user="developer").allowed


class TestOutcomes:
    def test_skipped_does_not_deny(self) -> None:
        verdict = judge("pods/blind", obj=pod())
        assert verdict.allowed
        assert verdict.outcomes[0].skipped == ("no Namespaces to look up",)

    def test_a_check_that_breaks_denies_and_names_itself_and_no_value(self) -> None:
        verdict = judge("pods/broken", obj=pod())
        assert verdict.denials[0].startswith(
            "[pods/broken] could not evaluate this object (ZeroDivisionError at test_evaluate.py:"
        )

    def test_a_check_that_breaks_in_warn_warns(self) -> None:
        verdict = judge("pods/broken", obj=pod(), policies={"*": {"mode": "warn"}})
        assert verdict.allowed
        assert verdict.warnings[0].startswith("[pods/broken] failed: ZeroDivisionError")


class TestMutation:
    def test_it_goes_on_until_nobody_has_anything_left_to_change(self) -> None:
        verdict = judge("pods/protect", "pods/tolerate", obj=pod())
        assert [policy for policy, _ in verdict.patches] == ["pods/protect", "pods/tolerate"]
        assert [operation["path"] for operation in verdict.operations] == ["/spec/tolerations", "/metadata/annotations"]

    def test_checks_judge_the_mutated_object_and_the_request_keeps_its_own(self) -> None:
        obj = pod()
        verdict = judge("pods/tolerate", obj=obj)
        assert verdict.object is not None
        assert verdict.object["spec"] == pod(tolerations=[TOLERATION])["spec"]
        assert obj == pod()

    @pytest.mark.parametrize(("mode", "warnings", "recorded"), [("warn", 1, 0), ("audit", 0, 1)])
    def test_below_enforce_it_says_what_it_would_patch(self, mode: str, warnings: int, recorded: int) -> None:
        verdict = judge("pods/tolerate", obj=pod(), policies={"*": {"mode": mode}})
        assert verdict.operations == ()
        assert [f.message for f in verdict.findings] == ["would be patched: adds a toleration"]
        assert (len(verdict.warnings), len(verdict.recorded)) == (warnings, recorded)

    @pytest.mark.parametrize("order", [("pods/remarks", "pods/tolerate"), ("pods/tolerate", "pods/remarks")])
    @pytest.mark.parametrize("mode", ["enforce", "warn"])
    def test_what_it_finds_is_said_once_however_often_it_runs(self, order: tuple[str, ...], mode: str) -> None:
        verdict = judge(*order, obj=pod(), policies={"pods/remarks": {"mode": mode}})
        messages = [finding.message for finding in verdict.findings]
        assert messages == ["is remarkable", "would be patched: sets the scheduler"][: 1 if mode == "enforce" else 2]

    @pytest.mark.parametrize(
        ("policies", "says"),
        [
            (
                ("pods/name-it-one", "pods/name-it-two"),
                "pods/name-it-one and pods/name-it-two make different changes to spec.schedulerName",
            ),
            (("pods/restless",), "its own patches change the object again in every round"),
            (("pods/misfit",), "a patch cannot be applied: kind is neither an object nor a list"),
        ],
        ids=["two that conflict", "one that never rests", "one that does not fit"],
    )
    def test_mutations_that_break_send_no_patch_and_warn(self, policies: tuple[str, ...], says: str) -> None:
        verdict = judge("pods/tolerate", *policies, obj=pod(tolerations=[TOLERATION]))
        assert verdict.allowed
        assert verdict.operations == ()
        assert {o.policy: o.error for o in verdict.outcomes if o.error} == dict.fromkeys(policies, says)

    def test_the_mutating_phase_denies_nothing_and_the_validating_one_patches_nothing(self) -> None:
        both = ("pods/named-bad", "pods/tolerate")
        mutating = judge(*both, obj=pod(containers=BAD), phase=Phase.MUTATE)
        validating = judge(*both, obj=pod(containers=BAD), phase=Phase.VALIDATE)
        assert (mutating.allowed, len(mutating.operations)) == (True, 1)
        assert (validating.allowed, len(validating.operations)) == (False, 0)


class TestTemplate:
    def test_a_finding_carries_the_pods_stance_and_the_workloads_kind(self) -> None:
        verdict = judge("pods/named-bad", obj=deployment(containers=BAD), kind="apps/v1 Deployment")
        finding = next(verdict.findings)
        assert (finding.stance, str(finding.template_of)) == (Stance.ENFORCE, "apps/v1 Deployment")
        assert finding.path == ("spec", "template", "spec", "containers", 0, "image")

    def test_at_admission_it_is_at_most_a_warning(self) -> None:
        verdict = judge(
            "pods/named-bad", obj=deployment(containers=BAD), kind="apps/v1 Deployment", ceiling=Stance.WARN
        )
        assert verdict.allowed
        assert len(verdict.warnings) == 1

    def test_it_is_never_patched_but_what_its_pods_will_get_is_said(self) -> None:
        @mutates(POD)
        def tolerate_here(template: Field, _ctx: AnyContext) -> Iterator[Patch | Violation | Skip]:
            if not template["spec", "tolerations"]:
                yield Patch("append", template["spec", "tolerations"].path, TOLERATION, "adds a toleration")

        HANDLERS["pods/tolerate-here"] = tolerate_here
        verdict = judge("pods/tolerate-here", obj=deployment(), kind="apps/v1 Deployment")
        del HANDLERS["pods/tolerate-here"]
        assert verdict.operations == ()
        assert verdict.object == deployment()
        assert [p.patch.path for _, p in verdict.template_patches] == [("spec", "template", "spec", "tolerations")]


class TestUpdate:
    def update(self, *policies: str, obj: dict[str, Json], old: dict[str, Json], **config: Json) -> Verdict:
        return judge(*policies, obj=obj, old=old, operation=Operation.UPDATE, **config)

    def test_what_the_old_object_had_too_is_a_warning(self) -> None:
        verdict = self.update("pods/named-bad", obj=pod(containers=BAD), old=pod(containers=BAD))
        assert verdict.allowed
        assert [f.note for f in verdict.findings] == ["the object had this before the update"]

    def test_what_the_update_adds_is_denied(self) -> None:
        assert not self.update("pods/named-bad", obj=pod(containers=BAD), old=pod()).allowed

    def test_a_reordered_list_adds_nothing(self) -> None:
        good: Json = {"name": "b", "image": "good"}
        old, new = pod(containers=[BAD[0], good]), pod(containers=[good, BAD[0]])  # type: ignore[index,list-item,call-overload]  # BAD is a list
        assert self.update("pods/named-bad", obj=new, old=old).allowed

    def test_the_same_in_another_container_is_new(self) -> None:
        new = pod(containers=[{"name": "a", "image": "bad"}, {"name": "b", "image": "bad"}])
        assert len(self.update("pods/named-bad", obj=new, old=pod(containers=BAD)).denials) == 1

    def test_an_unchanged_object_is_not_patched(self) -> None:
        verdict = self.update("pods/tolerate", obj=pod(), old=pod())
        assert verdict.operations == ()
        assert len(verdict.warnings) == 1

    def test_what_the_user_took_away_stays_away(self) -> None:
        protected = pod(tolerations=[TOLERATION]) | {"metadata": {"annotations": {ANNOTATION[2]: "true"}}}
        verdict = self.update("pods/protect", obj=pod(tolerations=[TOLERATION]), old=protected)
        assert verdict.operations == ()

    def test_only_a_pods_tolerations_and_annotations_are_patched(self) -> None:
        verdict = self.update("pods/name-it-one", obj=pod(), old=pod(schedulerName="one"))
        assert verdict.operations == ()
        assert len(verdict.warnings) == 1


POD_KIND = GroupVersionKind("", "v1", "Pod")
REQUIREMENTS: Json = [{"key": "zone", "operator": "In"}, {"key": "arch", "operator": "In"}]
TOLERATIONS: Json = [{"operator": "Exists"}, {"key": "a", "effect": "NoExecute"}]


class TestPlace:
    """Where something was found, in words that survive a reordered list."""

    @pytest.mark.parametrize(
        ("root", "path", "keyed"),
        [
            ({"spec": {"requirements": REQUIREMENTS}}, ("spec", "requirements", 1, "operator"), "[key=arch].operator"),
            ({"spec": {"tolerations": TOLERATIONS}}, ("spec", "tolerations", 1), "[key=a]"),
            ({"spec": {"tolerations": TOLERATIONS}}, ("spec", "tolerations", 0), "[0]"),
            ({"env": [{"key": "k", "name": "n"}]}, ("env", 0), "[name=n]"),
            ({"names": ["a", "b"]}, ("names", 1), "[1]"),
        ],
    )
    def test_an_element_is_named_by_its_merge_key(self, root: dict[str, Json], path: Path, keyed: str) -> None:
        assert keyed_path(path, root).endswith(keyed)

    def test_an_element_without_a_name_keeps_its_key_in_another_place(self) -> None:
        old: dict[str, Json] = {"spec": {"requirements": [REQUIREMENTS[1], REQUIREMENTS[0]]}}  # type: ignore[index,call-overload]  # a list
        ratchet = Ratchet(
            Request(POD_KIND, Operation.UPDATE, {"spec": {"requirements": REQUIREMENTS}}, old_object=old, name="p")
        )
        now = ratchet.now("a/b", Violation(("spec", "requirements", 0), "is wrong"))
        assert now == ratchet.before("a/b", Violation(("spec", "requirements", 1), "is wrong"))
        assert now != ratchet.before("a/b", Violation(("spec", "requirements", 0), "is wrong"))


class TestNotJudged:
    def test_a_delete(self) -> None:
        assert judge("pods/named-bad", old=pod(containers=BAD), operation=Operation.DELETE).outcomes == ()

    @pytest.mark.parametrize("subresource", ["status", "resize", "ephemeralcontainers"])
    def test_a_subresource_that_no_rule_is_about(self, subresource: str) -> None:
        verdict = judge(
            *("pods/named-bad", "pods/tolerate"),
            obj=pod(containers=BAD),
            old=pod(),
            subresource=subresource,
            operation=Operation.UPDATE,
        )
        assert verdict.outcomes == ()

    def test_a_kind_that_no_rule_is_about(self) -> None:
        assert judge("pods/named-bad", obj={"spec": 3}, kind="example.com/v1 Thing").allowed


class TestSubresource:
    def debug(self, new: Json, old: Json = None, subresource: str = "ephemeralcontainers") -> Verdict:
        return judge(
            "pods/debugs",
            obj=pod(ephemeralContainers=new),
            old=pod(ephemeralContainers=old),
            operation=Operation.UPDATE,
            subresource=subresource,
        )

    def test_rules_about_it_judge_its_requests(self) -> None:
        assert self.debug([{"name": "d"}]).denials == ("[pods/debugs] spec.ephemeralContainers[0]: is for debugging",)

    def test_they_judge_no_others(self) -> None:
        assert self.debug([{"name": "d"}], subresource="").outcomes == ()

    def test_it_answers_for_what_it_adds(self) -> None:
        verdict = self.debug([{"name": "d"}, {"name": "e"}], old=[{"name": "d"}])
        assert verdict.denials == ("[pods/debugs] spec.ephemeralContainers[1]: is for debugging",)
        assert len(verdict.warnings) == 1


class TestShape:
    @pytest.mark.parametrize(
        ("obj", "denial"),
        [
            (pod(containers={}), "spec.containers: must be a list, not an object"),
            (pod(containers=["a"]), "spec.containers[0]: must be an object, not a string"),
            (pod() | {"spec": []}, "spec: must be an object, not a list"),
            (
                pod(containers=[{"name": "a", "resources": {"limits": {"nvidia.com/gpu": "8 GPUs"}}}]),
                (
                    'spec.containers[0].resources.limits["nvidia.com/gpu"]: "8 GPUs" is not a quantity: " GPUs" after '
                    "the number is not a known suffix; write 8 alone, or one of m, k, M, G, T, Ki, Mi, Gi, Ti"
                ),
            ),
            (
                pod() | {"metadata": {"labels": {"team": 7}}},
                "metadata.labels.team: must be a string, not a number: put it in quotes",
            ),
        ],
        ids=lambda value: value if isinstance(value, str) else None,
    )
    def test_a_field_of_the_wrong_type_is_refused_and_nothing_is_patched(
        self, obj: dict[str, Json], denial: str
    ) -> None:
        verdict = judge("pods/tolerate", "pods/named-bad", obj=obj)
        assert verdict.denials == (denial,)
        assert verdict.operations == ()

    def test_one_that_was_there_before_does_not_hold_an_update_up(self) -> None:
        odd = pod(nodeSelector=3)
        assert judge("pods/named-bad", obj=odd, old=odd, operation=Operation.UPDATE).allowed


def test_a_rule_about_the_version_the_user_sent_judges_a_converted_object() -> None:
    @validates(NODE_POOL)
    def current(pool: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
        yield Violation(pool.path, "v1")

    beta = type(NODE_POOL)("karpenter.sh", ("v1beta1",), "NodePool", "nodepools", namespaced=False)

    @validates(beta)
    def legacy(pool: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
        yield Violation(pool.path, "v1beta1")

    ruleset = bind(
        [Policy("a/current", "A.", (current,)), Policy("a/legacy", "A.", (legacy,))],
        parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig"}),
    )
    request = Request(
        kind=GroupVersionKind("karpenter.sh", "v1", "NodePool"),
        requested_kind=GroupVersionKind("karpenter.sh", "v1beta1", "NodePool"),
        operation=Operation.CREATE,
        object={},
    )
    verdict = evaluate(ruleset, request, NoFacts(), today=TODAY)
    assert [f.message for f in verdict.findings] == ["v1", "v1beta1"]


def test_a_rule_about_both_versions_judges_a_converted_object_once() -> None:
    both = type(NODE_POOL)("karpenter.sh", ("v1beta1", "v1"), "NodePool", "nodepools", namespaced=False)

    @validates(both)
    def check(pool: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
        yield Violation(pool.path, "found")

    ruleset = bind(
        [Policy("a/both", "A.", (check,))],
        parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig"}),
    )
    request = Request(
        kind=GroupVersionKind("karpenter.sh", "v1", "NodePool"),
        requested_kind=GroupVersionKind("karpenter.sh", "v1beta1", "NodePool"),
        operation=Operation.CREATE,
        object={},
    )
    verdict = evaluate(ruleset, request, NoFacts(), today=TODAY)
    assert [f.message for f in verdict.findings] == ["found"]


def found_by(*handlers: Any, obj: dict[str, Json] | None = None, **attributes: Any) -> Verdict:
    """Evaluate an object with policies of one function each, which are named after it."""
    catalog = [Policy(f"pods/{handler.run.__name__}", "A policy.", (handler,)) for handler in handlers]
    facts = attributes.pop("facts", NoFacts())
    config = attributes.pop("config", {})
    kind = GroupVersionKind.of(*attributes.pop("kind", "v1 Pod").split(" "))
    request = Request(kind, attributes.pop("operation", Operation.CREATE), obj or pod(), **attributes)
    ruleset = bind(catalog, parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", **config}))
    return evaluate(ruleset, request, facts, today=TODAY)


class TestFinding:
    """What a finding has of its violation, and what the engine adds."""

    PATH = ("spec", "containers")
    WHOLE = Violation(
        PATH,
        "is bad",
        hint="Make it good.",
        fix=Patches((Patch("remove", PATH, None, "it is bad"),)),
        why="It is slow.",
        others=(Other("Node", "", "a"),),
        follows=True,
    )

    def test_it_has_everything_that_the_violation_has(self) -> None:
        @validates(POD)
        def check(_pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
            yield self.WHOLE

        fix = Patches((Patch("remove", self.PATH, None, "it is bad"),))
        attributes = {"hint": "Make it good.", "fix": fix, "why": "It is slow.", "others": (Other("Node", "", "a"),)}
        assert list(found_by(check).findings) == [
            Finding("pods/check", self.PATH, "is bad", Stance.ENFORCE, follows=True, **attributes)  # type: ignore[arg-type]
        ]

    @pytest.mark.parametrize("entry", [{}, {"policies": {"pods/check": {"mode": "enforce"}}}], ids=["default", "set"])
    def test_names_that_are_not_configured_are_a_warning(self, entry: dict[str, Any]) -> None:
        @validates(POD, convention="params")
        def check(_pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
            yield replace(self.WHOLE, convention=True)

        (finding,) = found_by(check, config=entry).findings
        assert (finding.stance, finding.convention) == ((Stance.ENFORCE, False) if entry else (Stance.WARN, True))

    @pytest.mark.parametrize(
        ("mode", "old", "note", "stance"),
        [
            ("warn", None, "", Stance.WARN),
            ("audit", None, "", Stance.AUDIT),
            ("enforce", pod(), "the object had this before the update", Stance.WARN),
        ],
    )
    def test_a_patch_that_is_not_made_is_one(
        self, mode: str, old: dict[str, Json] | None, note: str, stance: Stance
    ) -> None:
        operation = Operation.UPDATE if old else Operation.CREATE
        modes: Json = {"*": {"mode": mode}}
        verdict = judge("pods/tolerate", obj=pod(), old=old, operation=operation, policies=modes)
        message = "would be patched: adds a toleration"
        path = ("spec", "tolerations")
        assert list(verdict.findings) == [
            Finding("pods/tolerate", path, message, stance, note=note, would_patch=True),
        ]

    def test_skips_are_stated_once_and_may_come(self) -> None:
        @validates(POD)
        def waits(pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
            for _ in pod["spec", "containers"]:
                yield Skip("no Namespaces to look up", coming=True)
            yield Skip("no Nodes to look up")

        two = pod(containers=[{"name": "a"}, {"name": "b"}])
        (outcome,) = found_by(waits, obj=two).outcomes
        assert outcome.skipped == ("no Namespaces to look up", "no Nodes to look up")
        assert outcome.coming


class TestSameCause:
    """A finding is left out beside one of a policy that it names, at the same path and with the same mode or a higher one."""

    PATH = ("spec", "containers")

    @pytest.mark.parametrize(
        ("path", "modes", "left"),
        [
            pytest.param(PATH, {}, ["pods/states"], id="the same path and mode"),
            pytest.param(PATH, {"pods/repeats": {"mode": "warn"}}, ["pods/states"], id="a higher mode"),
            pytest.param(PATH, {"pods/states": {"mode": "warn"}}, ["pods/states", "pods/repeats"], id="a lower mode"),
            pytest.param(PATH, {"pods/states": {"mode": "off"}}, ["pods/repeats"], id="a policy that is off"),
            pytest.param(("spec",), {}, ["pods/states", "pods/repeats"], id="another path"),
        ],
    )
    @pytest.mark.parametrize("order", [1, -1], ids=["before", "after"])
    def test_one_cause_is_reported_once(self, path: Path, modes: dict[str, Any], left: list[str], order: int) -> None:
        @validates(POD)
        def states(_pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
            yield Violation(("metadata",), "another one")
            yield Violation(path, "is bad")

        @validates(POD)
        def repeats(_pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
            yield Violation(self.PATH, "is bad too", same_as=("pods/other", "pods/states"))

        verdict = found_by(*(states, repeats)[::order], config={"policies": modes})

        found = [finding for finding in verdict.findings if finding.path != ("metadata",)]
        assert sorted(finding.policy for finding in found) == sorted(left)
        covers = ("pods/repeats",) if left == ["pods/states"] else ()
        assert [each.covers for each in verdict.findings if each.policy == "pods/states"] in ([], [(), covers])

    def test_an_exempted_finding_stays(self) -> None:
        @validates(POD)
        def states(_pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
            yield Violation(self.PATH, "is bad")

        @validates(POD)
        def repeats(_pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
            yield Violation(self.PATH, "is bad too", same_as=("pods/states",))

        exemption = {"policies": ["pods/repeats"], "reason": "r", "owner": "o", "expires": "2026-11-21"}
        verdict = found_by(states, repeats, config={"exemptions": [exemption]})
        assert [finding.policy for finding in verdict.findings] == ["pods/states", "pods/repeats"]


class Kept:
    """Something that a policy has in a variable."""


@pytest.mark.parametrize("refers_to", ["error", "cause", "traceback"])
def test_an_exception_of_a_policy_keeps_nothing_of_the_request(refers_to: str) -> None:
    kept: list[weakref.ref[Kept]] = []
    # Each makes a cycle of the frame, which only a garbage collection frees.
    cycles = {"error": lambda error: error, "cause": caused_by, "traceback": lambda error: error.__traceback__}

    @validates(POD)
    def fails(_pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
        content = Kept()
        kept.append(weakref.ref(content))
        yield from ()
        try:
            raise ValueError  # noqa: TRY301 -- in this frame, which keeps it
        except ValueError as error:
            held = cycles[refers_to](error)
            assert held
            raise

    gc.disable()
    try:
        (outcome,) = found_by(fails).outcomes
        assert outcome.error.startswith("ValueError at test_evaluate.py:")
        assert [each() for each in kept] == [None]
    finally:
        gc.enable()


def caused_by(error: BaseException) -> BaseException:
    """Make an error the cause of its own cause."""
    cause = KeyError()
    error.__cause__, cause.__cause__ = cause, error
    return cause


WORKLOAD: dict[str, Json] = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {},
    "spec": {
        "pytorchReplicaSpecs": {name: {"template": {"spec": {"containers": []}}} for name in ("Master", "Worker")}
    },
}


@pytest.mark.parametrize("also_own", [False, True], ids=["shared", "shared and its own"])
@pytest.mark.parametrize("mode", ["enforce", "warn"])
def test_what_templates_share_is_patched_once(also_own: bool, mode: str) -> None:  # noqa: FBT001 -- a table's column
    @mutates(POD)
    def share(template: Field, ctx: AnyContext) -> Iterator[Patch | Violation | Skip]:
        if also_own and not template["spec", "schedulerName"]:
            yield Patch("set", template["spec", "schedulerName"].path, "one", "sets the scheduler")
        if ctx.wrapper and not ctx.wrapper.root["spec", "runPolicy"]:
            yield Patch("append", ("spec", "runPolicy"), "a", "adds a policy")

    verdict = found_by(share, obj=WORKLOAD, kind="kubeflow.org/v1 PyTorchJob", config={"mode": mode})

    shared = [each.patch.path for _, each in verdict.template_patches if each.patch.path == ("spec", "runPolicy")]
    assert len(shared) == (mode == "enforce")
    assert len(verdict.template_patches) == (mode == "enforce") * (3 if also_own else 1)
    assert len(list(verdict.findings)) == (mode == "warn") * (4 if also_own else 2)
    assert verdict.object == WORKLOAD


@pytest.mark.parametrize(
    ("needs", "names_accelerator", "called"),
    [
        pytest.param((Need(DEVICE_CLASS, ("spec",)),), True, True, id="a class that names an accelerator"),
        pytest.param((Need(DEVICE_CLASS, ("spec",)),), False, False, id="a class that names none"),
        pytest.param((Need(POD, ("spec",)),), True, False, id="a policy that does not read classes"),
        pytest.param((), True, False, id="a policy that reads nothing"),
    ],
)
def test_a_device_class_may_concern_a_policy_with_any_pod(
    context: Any,
    needs: tuple[Need, ...],
    names_accelerator: bool,  # noqa: FBT001 -- a table's column
    called: bool,  # noqa: FBT001 -- a table's column
) -> None:
    @validates(POD, needs=needs, concerns=NAMES_ACCELERATOR)
    def check(pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
        yield Violation(pod.path, "called")

    resource = "example.com/fast" if names_accelerator else "nvidia.com/gpu"
    facts = context(
        "kind: Pod",
        f"""
        apiVersion: resource.k8s.io/v1
        kind: DeviceClass
        metadata: {{name: gpu.nvidia.com}}
        spec: {{extendedResourceName: {resource}}}
        """,
    ).facts

    assert bool(list(found_by(check, facts=facts).findings)) is called
