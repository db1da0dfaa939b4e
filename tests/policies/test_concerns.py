"""No policy finds or changes anything in a Pod that its concerns would keep from the webhook, or from the policy."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from example_laws import for_each_case, of_policy
from hypothesis import given, settings
from hypothesis import strategies as st
from library_examples import Example, library_example, ruleset_of

import gpugate.policies
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig, PolicyEntry
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.concerns import (
    EVERY_OBJECT,
    MOST_INNER_ELEMENTS,
    MOST_KEYS,
    AllOf,
    AnyOf,
    Concern,
    Each,
    Flag,
    Key,
    Not,
    Text,
    any_of,
    reader,
    walked,
    without,
)
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Accelerators, Platform, Taint
from gpugate.webhook.manifests.load import RunFacts
from gpugate.webhook.registration.entries import mutated, validated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.facts import Facts

FILES = sorted(Path(gpugate.policies.__file__).parent.glob("*/examples/*/*.yaml"))
EXAMPLES = {str(file): library_example(file) for file in FILES}
POD = GroupVersionKind("", "v1", "Pod")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
TODAY = dt.date(2026, 11, 21)
DAEMON_SETS = "system:serviceaccount:kube-system:daemon-set-controller"


def pods_in(example: Example) -> Iterator[dict[str, Any]]:
    """The Pod that is judged, or a Pod of each template that is."""
    for subject in example.request.subjects:
        if subject.kind == POD:
            metadata = dict(subject.field["metadata"].mapping) | {"name": "a"}
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": dict(subject.field["spec"].mapping)}


PODS = [(name, pod) for name, example in EXAMPLES.items() for pod in pods_in(example)]


def heard(verdict: Verdict) -> set[str]:
    """The policies that say or change anything, or could not look."""
    return {o.policy for o in verdict.outcomes if o.findings or o.patches or o.skipped or o.error}


def unconcerned(pod: dict[str, Any], example: Example, config: PolicyConfig, user: str) -> set[str]:
    """The policies that are heard of in a phase for which none of their concerns holds."""
    request = with_defaults(Request(POD, Operation.CREATE, pod, name="a", namespace="research", user=user))
    ruleset, facts = ruleset_of(config), RunFacts(example.context, complete=example.complete)
    found: set[str] = set()
    for phase, mutates in ((Phase.MUTATE, True), (Phase.VALIDATE, False)):
        verdict = evaluate(ruleset, request, facts, today=TODAY, phase=phase)
        assert not verdict.malformed
        for rule, handler in ruleset.handlers(POD, mutating=mutates):
            holds = handler.concerns.holds(Field(request.object), config.platform, user)
            if rule.policy.id in heard(verdict) and not holds:
                found.add(rule.policy.id)
        request = Request(POD, Operation.CREATE, verdict.object, name="a", namespace="research", user=user)
    return found


EVERYTHING_ON = PolicyConfig(
    platform=Platform(
        taints={"example.com/tpu": (Taint(key="tpu"),), "nvidia.com/*": (Taint(key="dedicated", value="gpu"),)},
        accelerators=Accelerators(resources=("example.com/tpu",), device_classes=("*.example.com",)),
    ),
    policies={policy.id: PolicyEntry(mode="enforce") for policy in CATALOG},
)


@for_each_case(EXAMPLES, of_policy)
def test_an_example_concerns_every_policy_that_is_heard_of(example: Example) -> None:
    for pod in pods_in(example):
        assert unconcerned(pod, example, example.config, "alice") == set()


def parts(*path: str) -> st.SearchStrategy[Any]:
    """What the Pods of the library have at a path."""
    found = [Field(pod)[path].value for _, pod in PODS]
    return st.sampled_from([value for value in found if value is not None])


CONTAINER = st.fixed_dictionaries(
    {"name": st.just("a"), "image": st.just("busybox")},
    optional={
        "resources": st.fixed_dictionaries(
            {},
            optional={
                block: st.dictionaries(
                    st.sampled_from(["cpu", "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "example.com/tpu"]),
                    st.sampled_from(["0", "1", "2"]),
                    max_size=2,
                )
                for block in ("limits", "requests")
            }
            | {"claims": st.just([{"name": "gpu"}])},
        ),
        "env": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from(["A", "NVIDIA_VISIBLE_DEVICES", "HABANA_VISIBLE_DEVICES", "CUDA_VERSION"])},
                optional={
                    "value": st.sampled_from(["", "none", "all"]),
                    "valueFrom": st.sampled_from(
                        [{"fieldRef": {"fieldPath": "metadata.name"}}, {"configMapKeyRef": {"name": "c", "key": "k"}}]
                    ),
                },
            ),
            max_size=2,
        ),
        "securityContext": st.fixed_dictionaries(
            {}, optional={"privileged": st.booleans(), "capabilities": st.just({"add": ["SYS_PTRACE"]})}
        ),
        "volumeMounts": st.lists(
            st.fixed_dictionaries(
                {
                    "name": st.just("v"),
                    "mountPath": st.sampled_from(["/data", "/var/run/nvidia-container-devices/all"]),
                }
            ),
            max_size=2,
        ),
    },
)
TOLERATION = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from(["", "nvidia.com/gpu", "dedicated", "tpu", "other", "karpenter.sh/disruption"]),
        "operator": st.sampled_from(["Equal", "Exists"]),
        "value": st.sampled_from(["", "true", "gpu"]),
        "effect": st.sampled_from(["", "NoSchedule", "NoExecute"]),
    },
)
HOST_PATHS = [
    "/",
    "//./",
    "/dev",
    "dev/.",
    "/dev/nvidia0",
    "/dev/kfd",
    "/run/nvidia/x",
    "/var/lib/kubelet/device-plugins",
    "/dev/null",
    "/dev/accel/accel0",
    "/dev/hl0",
    "/dev/char/195:0",
    "/dev/./dri",
    "/proc/",
    "/var",
    "/var/lib//kubelet",
    "/run",
    "/var/run/docker.sock",
    "/etc/cdi",
]
VOLUME = st.fixed_dictionaries(
    {"name": st.just("v")},
    optional={"hostPath": st.fixed_dictionaries({"path": st.sampled_from(["/data", *HOST_PATHS])})},
)
OWNER = st.fixed_dictionaries(
    {"kind": st.sampled_from(["DaemonSet", "Job", "ReplicaSet"]), "controller": st.booleans(), "name": st.just("a")}
)
CLAIM = st.fixed_dictionaries({"name": st.just("gpu"), "resourceClaimTemplateName": st.just("mig-1g-10gb")})
ANNOTATIONS = st.dictionaries(
    st.sampled_from(
        ["karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-evict", "cdi.k8s.io/x", "gpugate.dev/mig-profile"]
    ),
    st.sampled_from(["true", "false", "nvidia.com/gpu=all", "1g.10gb"]),
    max_size=2,
)
RANDOM_PODS = st.fixed_dictionaries(
    {
        "apiVersion": st.just("v1"),
        "kind": st.just("Pod"),
        "metadata": st.fixed_dictionaries(
            {"name": st.just("a")},
            optional={
                "annotations": ANNOTATIONS | parts("metadata", "annotations"),
                "labels": parts("metadata", "labels"),
                "ownerReferences": st.lists(OWNER, max_size=2),
            },
        ),
        "spec": st.fixed_dictionaries(
            {"containers": parts("spec", "containers") | st.lists(CONTAINER, min_size=1, max_size=2)},
            optional={
                "affinity": parts("spec", "affinity"),
                "ephemeralContainers": st.lists(CONTAINER, max_size=1),
                "initContainers": parts("spec", "initContainers") | st.lists(CONTAINER, max_size=2),
                "hostPID": st.booleans(),
                "nodeName": st.just("node-1"),
                "nodeSelector": parts("spec", "nodeSelector"),
                "resourceClaims": parts("spec", "resourceClaims") | st.lists(CLAIM, max_size=1),
                "runtimeClassName": st.sampled_from(["gvisor", "nvidia", "nvidia-cdi", "habana"]),
                "tolerations": parts("spec", "tolerations") | st.lists(TOLERATION, max_size=2),
                "topologySpreadConstraints": parts("spec", "topologySpreadConstraints"),
                "volumes": parts("spec", "volumes") | st.lists(VOLUME, max_size=2),
            },
        ),
    }
)


@settings(max_examples=300, deadline=None)
@given(
    pod=RANDOM_PODS,
    example=st.sampled_from(list(EXAMPLES.values())),
    config=st.sampled_from([PolicyConfig(), EVERYTHING_ON]),
    user=st.sampled_from(["alice", DAEMON_SETS]),
)
def test_a_random_pod_concerns_every_policy_that_is_heard_of(
    pod: dict[str, Any], example: Example, config: PolicyConfig, user: str
) -> None:
    assert unconcerned(pod, example, config, user) == set()


ANYWHERE: dict[str, Any] = {"containers": [{"name": "a"}], "tolerations": [{"operator": "Exists"}]}
CORNERS = {
    **{
        f"the host's {path}": {"spec": ANYWHERE | {"volumes": [{"name": "v", "hostPath": {"path": path}}]}}
        for path in HOST_PATHS
    },
    **{
        f"a mount at {path}": {
            "spec": {
                "containers": [{"name": "a", "volumeMounts": [{"name": "v", "mountPath": path}]}],
                "volumes": [{"name": "v", "hostPath": {"path": "/dev//null"}}],
            }
        }
        for path in ("var/run/nvidia-container-devices/all", "/a/..//var/run/nvidia-container-devicesall")
    },
    "a DaemonSet that does not control it": {
        "metadata": {"ownerReferences": [{"kind": "DaemonSet", "controller": False}]},
        "spec": ANYWHERE,
    },
    "a controller that is no DaemonSet": {
        "metadata": {"ownerReferences": [{"kind": "Job", "controller": True}, {"kind": "DaemonSet"}]},
        "spec": ANYWHERE,
    },
}


@pytest.mark.parametrize("pod", CORNERS.values(), ids=CORNERS)
def test_a_corner_case_concerns_every_policy_that_is_heard_of(pod: dict[str, Any]) -> None:
    assert unconcerned(pod, next(iter(EXAMPLES.values())), EVERYTHING_ON, DAEMON_SETS) == set()


ORDINARY = {
    "a web server": {"containers": [{"name": "web", "image": "nginx", "resources": {"limits": {"cpu": "1"}}}]},
    "one that selects its nodes": {"containers": [{"name": "a"}], "nodeSelector": {"kubernetes.io/os": "linux"}},
    "one with the tolerations that every Pod gets": {
        "containers": [{"name": "a"}],
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
    },
    "one that is privileged and runs anywhere": {
        "containers": [{"name": "a", "securityContext": {"privileged": True}}]
    },
    "one that reads the logs of its node": {
        "containers": [{"name": "a"}],
        "volumes": [{"name": "logs", "hostPath": {"path": "/var/log"}}],
    },
}


def concerns_of_policies(config: PolicyConfig) -> list[Concern]:
    ruleset = ruleset_of(config)
    bound = (*ruleset.handlers(POD, mutating=True), *ruleset.handlers(POD, mutating=False))
    return [handler.concerns for _, handler in bound]


def any_policy_may_be_interested(pod: dict[str, Any], user: str = "alice") -> bool:
    return any_of(*concerns_of_policies(PolicyConfig())).holds(Field(pod), Platform(), user)


@pytest.mark.parametrize("spec", ORDINARY.values(), ids=ORDINARY)
def test_an_ordinary_pod_concerns_nobody(spec: dict[str, Any]) -> None:
    assert not any_policy_may_be_interested({"metadata": {"labels": {"app": "a"}}, "spec": spec})


def test_an_agent_of_a_daemon_set_concerns_nobody() -> None:
    agent: dict[str, Any] = {
        "metadata": {"ownerReferences": [{"kind": "DaemonSet", "controller": True}]},
        "spec": {
            "containers": [{"name": "a", "securityContext": {"privileged": True}}],
            "tolerations": [{"operator": "Exists"}],
        },
    }
    assert not any_policy_may_be_interested(agent, DAEMON_SETS)
    assert any_policy_may_be_interested(agent, "alice")


def named(count: int, **values: Any) -> list[dict[str, Any]]:
    return [{"name": f"n{number}", **values} for number in range(count)]


ZERO = {f"example.com/r{number}": "0" for number in range(4200)}
LARGE: dict[str, dict[str, Any]] = {
    "resources of a container": {"spec": {"containers": [{"name": "a", "resources": {"limits": ZERO}}]}},
    "resources of all containers": {
        "spec": {"containers": named(20, resources={"requests": dict(list(ZERO.items())[:4])})},
    },
    "containers": {"spec": {"containers": named(33)}},
    "init containers": {"spec": {"initContainers": named(33)}},
    "variables": {"spec": {"containers": [{"name": "a", "env": named(257, value="x")}]}},
    "variables of debug containers": {"spec": {"ephemeralContainers": named(30, env=named(9, value="x"))}},
    "volumes": {"spec": {"volumes": named(33, emptyDir={})}},
    "a path of the host": {"spec": {"volumes": [{"name": "a", "hostPath": {"path": "/a" * 33}}]}},
    "tolerations": {"spec": {"tolerations": [{"key": f"k{number}"} for number in range(33)]}},
    "annotations": {"metadata": {"annotations": {f"a{number}": "x" for number in range(49)}}},
    "the name of an annotation": {"metadata": {"annotations": {"a" * 65: "x"}}},
    "the name of the runtime class": {"spec": {"runtimeClassName": "a" * 65}},
    "the name of an image": {"spec": {"containers": [{"name": "a", "image": "registry.example.com/" + "a" * 172}]}},
    "terms of node affinity": {
        "spec": {
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": named(33)}}
            }
        }
    },
}


@pytest.mark.parametrize("pod", LARGE.values(), ids=LARGE)
def test_a_pod_of_which_something_is_unusually_large_concerns_a_policy(pod: dict[str, Any]) -> None:
    assert any_policy_may_be_interested(pod)


@pytest.mark.parametrize("config", [PolicyConfig(), EVERYTHING_ON], ids=["as shipped", "everything on"])
def test_a_reader_answers_as_the_match_conditions_do_for_every_example(config: PolicyConfig) -> None:
    concerns = concerns_of_policies(config)
    readers = [reader(concern, config.platform) for concern in concerns]
    for name, pod in PODS:
        for user in ("alice", DAEMON_SETS):
            expected = [concern.holds(Field(pod), config.platform, user) for concern in concerns]
            assert [holds(pod, user) for holds in readers] == expected, name


A, B, C = Flag("a"), Flag("b"), Flag("c")
LEFT: dict[str, tuple[Concern, Concern, Concern]] = {
    "nothing in common": (A, B, A),
    "the same": (A, A, any_of()),
    "one of two": (A | B, B | C, AnyOf((A,))),
    "an element": (Each("x", A), Each("x", A) | B, any_of()),
    "another element": (Each("x", A), Each("y", A), Each("x", A)),
    "one of two in an element": (Each("x", A | B), Each("x", B), Each("x", AnyOf((A,)))),
    "both": (A & B, B, any_of()),
    "either of two with a third": ((A | B) & C, A, (A | B) & C),
}


@pytest.mark.parametrize(("whole", "other", "left"), LEFT.values(), ids=LEFT)
def test_what_another_concern_covers_is_left_out(whole: Concern, other: Concern, left: Concern) -> None:
    assert without(whole, other) == left


@pytest.mark.parametrize("judging", [mutated, validated])
def test_what_is_left_holds_where_one_concern_does_and_the_other_does_not(judging: Any) -> None:
    (pods,) = (each for each in judging(ruleset_of(EVERYTHING_ON)) if each.plural == "pods")
    left = reader(without(pods.advised, pods.enforced), Platform())
    advised, enforced = reader(pods.advised, Platform()), reader(pods.enforced, Platform())
    for name, pod in PODS:
        assert (left(pod, "alice") and not enforced(pod, "alice")) == (
            advised(pod, "alice") and not enforced(pod, "alice")
        ), name


CPU_ONLY = {"spec": {"containers": named(40, resources={"limits": {"cpu": "1", "memory": "1Gi"}})}}
ONE_GPU = {"spec": {"containers": [*named(40), {"name": "gpu", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}


@pytest.mark.parametrize(
    ("pod", "concerned"),
    [pytest.param(CPU_ONLY, False, id="CPU only"), pytest.param(ONE_GPU, True, id="a GPU in the last container")],
)
def test_a_reader_reads_an_unusually_large_pod_to_its_end(pod: dict[str, Any], *, concerned: bool) -> None:
    every = any_of(*concerns_of_policies(PolicyConfig()))

    assert every.holds(Field(pod), Platform(), "alice")
    assert reader(every, Platform())(pod, "alice") is concerned


FLAGGED = Each("a", Flag("b"))


@pytest.mark.parametrize("concern", [FLAGGED, ~FLAGGED, ~(FLAGGED & Flag("c")), ~~FLAGGED])
def test_what_is_unusually_large_is_sent_whichever_way_a_concern_is_turned(concern: Concern) -> None:
    obj = Field({"a": [{"b": False}] * 33, "c": True})

    assert concern.holds(obj, Platform(), "")


USUAL: dict[str, dict[str, Any]] = {
    "a hundred variables": {"containers": [{"name": "a", "env": named(100, value="x")}]},
    "an image with a digest": {
        "containers": [
            {
                "name": "a",
                "image": "registry.example.com:5000/platform/billing/invoices:v1.20.3@sha256:" + "0123456789abcdef" * 4,
            }
        ]
    },
    "twenty containers with limits": {"containers": named(20, resources={"limits": {"cpu": "1", "memory": "1Gi"}})},
}


@pytest.mark.parametrize("spec", USUAL.values(), ids=USUAL)
def test_a_pod_of_usual_size_concerns_nobody(spec: dict[str, Any]) -> None:
    assert not any_policy_may_be_interested({"metadata": {"labels": {"app": "a"}}, "spec": spec})


def test_names_that_are_known_are_looked_up_however_many_others_there_are() -> None:
    labels = {f"label-{number}": "x" for number in range(1000)}

    assert not Key("labels", ("one", "two")).holds(Field({"labels": labels}), Platform(), "")
    assert Key("labels", ("one", "two")).holds(Field({"labels": {**labels, "two": ""}}), Platform(), "")


def test_one_that_is_concerned_with_every_object_makes_all_of_them_so() -> None:
    assert any_of(AnyOf(()), EVERY_OBJECT) == EVERY_OBJECT


def test_of_none_nothing_holds() -> None:
    assert not any_of().holds(Field({}), Platform(), "")


def unfiltered(ruleset: Ruleset) -> Ruleset:
    return replace(ruleset, readers={})


def assert_same(config: PolicyConfig, request: Request, facts: Facts) -> None:
    ruleset = ruleset_of(config)
    assert ruleset.readers
    for phase in Phase:
        found = evaluate(ruleset, request, facts, today=TODAY, phase=phase)
        assert found == evaluate(unfiltered(ruleset), request, facts, today=TODAY, phase=phase), phase


@for_each_case(EXAMPLES, of_policy)
def test_an_example_has_the_verdict_that_it_has_if_every_policy_is_called(example: Example) -> None:
    assert_same(example.config, example.request, RunFacts(example.context, complete=example.complete))


def update(old: dict[str, Any], new: dict[str, Any], user: str) -> Request:
    return Request(POD, Operation.UPDATE, new, old, name="a", namespace="research", user=user)


def created(pod: dict[str, Any], user: str) -> Request:
    return Request(POD, Operation.CREATE, pod, name="a", namespace="research", user=user)


def in_template(pod: dict[str, Any], user: str) -> Request:
    metadata = {"labels": pod["metadata"].get("labels", {}), "annotations": pod["metadata"].get("annotations", {})}
    owners = pod["metadata"].get("ownerReferences", [])
    template = {"metadata": metadata | {"ownerReferences": owners}, "spec": pod["spec"]}
    deployment: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"template": template}}
    return Request(DEPLOYMENT, Operation.CREATE, deployment, name="a", namespace="research", user=user)


@settings(max_examples=200, deadline=None)
@given(
    pod=RANDOM_PODS,
    old=RANDOM_PODS,
    example=st.sampled_from(list(EXAMPLES.values())),
    config=st.sampled_from([PolicyConfig(), EVERYTHING_ON]),
    user=st.sampled_from(["", "alice", DAEMON_SETS]),
    shape=st.sampled_from([created, in_template, update]),
)
def test_a_random_pod_has_the_verdict_that_it_has_if_every_policy_is_called(
    pod: dict[str, Any], old: dict[str, Any], example: Any, config: PolicyConfig, user: str, shape: Any
) -> None:
    request = update(old, pod, user) if shape is update else shape(pod, user)
    assert_same(config, request, RunFacts(example.context, complete=example.complete))


NAMES_AN_ACCELERATOR = """\
# context
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec: {extendedResourceName: example.com/board}
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
    - {name: a, image: busybox, resources: {limits: {example.com/board: 1}}}
"""


def test_a_resource_that_only_a_device_class_names_counts(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(NAMES_AN_ACCELERATOR)
    example = library_example(tmp_path / "a.yaml")

    with_class = evaluate(ruleset_of(PolicyConfig()), example.request, RunFacts(example.context), today=TODAY)
    without = evaluate(ruleset_of(PolicyConfig()), example.request, NoFacts(), today=TODAY)

    assert {finding.policy for finding in with_class.findings} == {"pods/missing-cost-labels"}
    assert list(without.findings) == []
    assert_same(PolicyConfig(), example.request, RunFacts(example.context))


def test_policies_that_concerns_keep_from_being_called_count_as_passed() -> None:
    request = created({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a"}]}}, "alice")
    ruleset = ruleset_of(PolicyConfig())

    verdict = evaluate(ruleset, request, NoFacts(), today=TODAY, phase=Phase.VALIDATE)

    called = [rule.policy.id for rule, _ in ruleset.handlers(POD, mutating=False)]
    assert [outcome.policy for outcome in verdict.outcomes] == called


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        pytest.param(EVERY_OBJECT, (), id="every object"),
        pytest.param(Text("a", ("b*",)), (), id="a text"),
        pytest.param(Key("a", ("*",)), (), id="any key"),
        pytest.param(Key("a", ("b", "c")), (), id="keys by name"),
        pytest.param(Key("a", ("b*",)), (("a", MOST_KEYS),), id="keys by pattern"),
        pytest.param(Each("a", EVERY_OBJECT), (), id="any element"),
        pytest.param(Each("a", Text("b", ("c",))), (("a", MOST_INNER_ELEMENTS),), id="elements by what they hold"),
        pytest.param(Not(Key("a", ("b*",))), (("a", MOST_KEYS),), id="the opposite"),
        pytest.param(
            AllOf((Key("a", ("b*",)), AnyOf((Key("a", ("c*",)), Each("d", Text("b", ("c",))))))),
            (("a", MOST_KEYS), ("d", MOST_INNER_ELEMENTS)),
            id="parts",
        ),
    ],
)
def test_what_is_read_one_by_one_has_a_limit(where: Concern, expected: tuple[tuple[str, int], ...]) -> None:
    assert walked(where) == expected
