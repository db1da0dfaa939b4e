"""What is too large is not evaluated, and answered by the mode of the policies that it concerns."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml
from growth import Case, products

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine import bounds
from gpugate.policies.engine.config import parse_config
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.engine.verdict import Verdict

GPU: dict[str, Any] = {"name": "a", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
ONLY = {"pods/mixed-gpu-resources"}


def pod(containers: int = 1, *, gpu: bool = True, **spec: Any) -> dict[str, Any]:
    first = dict(GPU) if gpu else {"name": "a"}
    more = [{"name": f"c{n}"} for n in range(containers - 1)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [first, *more], **spec},
    }


def judge(
    obj: dict[str, Any],
    old: dict[str, Any] | None = None,
    *,
    mode: str = "enforce",
    operation: Operation | None = None,
    only: set[str] | None = ONLY,
    phase: Phase = Phase.VALIDATE,
    config: dict[str, Any] | None = None,
) -> Verdict:
    entries: dict[str, Any] = {"pods/mixed-gpu-resources": {"mode": mode}}
    parsed = parse_config(
        {"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", "policies": entries, **(config or {})}
    )
    request = Request(
        GroupVersionKind.of(obj["apiVersion"], obj["kind"]),
        operation or (Operation.UPDATE if old else Operation.CREATE),
        None if operation is Operation.DELETE else obj,
        obj if operation is Operation.DELETE else old,
        name="a",
        namespace="ml",
    )
    ruleset = bind(CATALOG, parsed, only)
    ceiling = Stance.WARN
    return evaluate(ruleset, request, NoFacts(), today=dt.date(2026, 11, 21), phase=phase, template_ceiling=ceiling)


SAID = "spec.containers: too large to evaluate: spec.containers has 251 entries (limit: 250)"


def test_at_the_bound_an_object_is_evaluated() -> None:
    assert judge(pod(250)).malformed == ()


@pytest.mark.parametrize(
    ("mode", "allowed", "denials", "warnings"),
    [("enforce", False, (SAID,), ()), ("warn", True, (), (SAID,)), ("audit", True, (), ()), ("off", True, (), ())],
)
def test_above_it_the_mode_decides(
    mode: str,
    allowed: bool,  # noqa: FBT001 -- a table's column
    denials: tuple[str, ...],
    warnings: tuple[str, ...],
) -> None:
    verdict = judge(pod(251), mode=mode)
    assert (verdict.allowed, verdict.denials, verdict.warnings) == (allowed, denials, warnings)


def test_policies_that_were_not_run_say_so() -> None:
    (outcome,) = judge(pod(251), mode="audit").outcomes
    assert (outcome.policy, outcome.skipped) == ("pods/mixed-gpu-resources", ("the object is too large to evaluate",))


@pytest.mark.parametrize("count", [251, 4000])
def test_an_object_that_concerns_no_policy_is_allowed(count: int) -> None:
    verdict = judge(pod(count, gpu=False), only=None)
    assert (verdict.allowed, verdict.warnings, verdict.outcomes) == (True, (), ())


def test_thousands_of_arguments_and_variables_of_a_pod_without_gpus_are_allowed() -> None:
    many = {"args": ["a"] * 15_000, "env": [{"name": f"A{n}", "value": "b"} for n in range(15_000)]}
    obj = pod(gpu=False)
    obj["spec"]["containers"][0] |= many
    assert judge(obj, only=None).allowed


def test_mutations_are_left_out_too() -> None:
    verdict = judge(pod(251), only=None, phase=Phase.MUTATE)
    assert verdict.operations == ()


@pytest.mark.parametrize(
    ("new", "old", "allowed"),
    [(251, 251, True), (251, 300, True), (252, 251, False), (251, 1, False)],
    ids=["unchanged", "smaller", "larger", "too-large-now"],
)
def test_an_update_is_denied_only_for_what_it_adds(new: int, old: int, allowed: bool) -> None:  # noqa: FBT001 -- a table's column
    verdict = judge(pod(new), pod(old))
    assert verdict.allowed is allowed
    assert len(verdict.warnings) == (1 if allowed else 0)


def test_a_delete_is_allowed() -> None:
    assert judge(pod(10_000), operation=Operation.DELETE).allowed


def test_lists_of_one_place_count_together() -> None:
    obj = pod(2)
    for container in obj["spec"]["containers"]:
        container["env"] = [{"name": f"A{n}"} for n in range(3_000)]
    (said,) = judge(obj).denials
    assert said == "spec.containers: too large to evaluate: spec.containers[*].env has 6000 entries (limit: 5000)"


def test_an_exempted_namespace_is_recorded_only() -> None:
    exemption = {"policies": ["*"], "namespaces": ["ml"], "reason": "r", "owner": "o", "expires": "2027-01-01"}
    assert judge(pod(251), config={"exemptions": [exemption]}).allowed


def test_what_templates_share_counts_for_each_of_them() -> None:
    templates = [{"name": f"t{n}", "container": {"name": "a", **GPU}} for n in range(20)]
    tolerations = [{"key": f"k{n}", "operator": "Exists"} for n in range(30)]
    spec = {"templates": templates, "tolerations": tolerations}
    obj = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {}, "spec": spec}
    (said,) = judge(obj).warnings
    assert said == "spec.tolerations: too large to evaluate: spec.tolerations has 600 entries (limit: 500)"


def workflow(templates: int, *where: str, entries: Any) -> dict[str, Any]:
    """A workflow whose templates each have a volume and a label, and share the entries at a path of its spec."""
    own = {"volumes": [{"name": "own", "emptyDir": {}}], "metadata": {"labels": {"own": "a"}}}
    spec: Any = entries
    for name in reversed(where):
        spec = {name: spec}
    spec["templates"] = [{"name": f"t{n}", "container": {"name": "a", **GPU}, **own} for n in range(templates)]
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {}, "spec": spec}


def volumes(count: int) -> list[dict[str, Any]]:
    return [{"name": f"v{n}", "emptyDir": {}} for n in range(count)]


def labels(count: int) -> dict[str, str]:
    return {f"label-{n}": "a" for n in range(count)}


SHARED = [
    pytest.param(("volumes",), volumes, id="volumes"),
    pytest.param(("templateDefaults", "volumes"), volumes, id="default-volumes"),
    pytest.param(("podMetadata", "labels"), labels, id="labels"),
    pytest.param(("podMetadata", "annotations"), labels, id="annotations"),
    pytest.param(("templateDefaults", "metadata", "labels"), labels, id="default-labels"),
    pytest.param(("tolerations",), volumes, id="tolerations"),
    pytest.param(("nodeSelector",), labels, id="node-selector"),
]


@pytest.mark.parametrize("wrapped", [False, True], ids=["workflow", "app-wrapper"])
@pytest.mark.parametrize(("where", "entries"), SHARED)
def test_what_templates_share_is_counted_without_a_copy_for_each(
    where: tuple[str, ...],
    entries: Callable[[int], Any],
    wrapped: bool,  # noqa: FBT001 -- a table's column
) -> None:
    cases = []
    for templates, count in ((45, 5_000), (180, 20_000)):
        obj = workflow(templates, *where, entries=entries(count))
        if wrapped:
            spec = {"components": [{"template": obj}]}
            obj = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": {}, "spec": spec}
        kind = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
        cases.append(Case(f"{templates} templates", Request(kind, Operation.CREATE, obj, name="a")))
    assert [str(each) for each in products(CATALOG, [(cases[0], cases[1])], floor=0.1)] == []


@pytest.mark.parametrize(
    ("name", "entries"),
    [("labels", labels), ("annotations", labels), ("envs", volumes)],
    ids=["labels", "annotations", "environment"],
)
def test_what_services_of_a_dynamo_graph_share_is_counted_so_too(name: str, entries: Callable[[int], Any]) -> None:
    kind = GroupVersionKind("nvidia.com", "v1alpha1", "DynamoGraphDeployment")
    cases = []
    for count, size in ((45, 5_000), (180, 20_000)):
        services = {f"s{n}": {"resources": {"limits": {"gpu": "1"}}, "envs": [{"name": "own"}]} for n in range(count)}
        spec = {"services": services, name: entries(size)}
        obj = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "metadata": {}, "spec": spec}
        cases.append(Case(f"{count} services", Request(kind, Operation.CREATE, obj, name="a")))
    assert [str(each) for each in products(CATALOG, [(cases[0], cases[1])], floor=0.1)] == []


@pytest.mark.parametrize(("old", "grown"), [(200, True), (400, False)], ids=["grown", "as-before"])
def test_volumes_that_templates_share_are_reported_at_the_workflow(old: int, grown: bool) -> None:  # noqa: FBT001 -- a table's column
    new, before = (workflow(100, "volumes", entries=volumes(count)) for count in (400, old))
    kind = GroupVersionKind("argoproj.io", "v1alpha1", "Workflow")
    (found,) = bounds.too_many_templates(Request(kind, Operation.UPDATE, new, before))
    said = "too large to evaluate: spec.volumes has 40000 entries (limit: 1000)"
    assert (found.violation.path, found.violation.message, found.grown) == (("spec", "volumes"), said, grown)


@pytest.mark.parametrize("count", [201, 20_000])
def test_a_workload_of_too_many_templates_is_a_warning(count: int) -> None:
    template = {"spec": {"containers": [GPU]}}
    replicas = {f"w{n}": {"template": template} for n in range(count)}
    obj = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {},
        "spec": {"pytorchReplicaSpecs": replicas},
    }
    verdict = judge(obj)
    path = "spec.pytorchReplicaSpecs"
    assert verdict.warnings == (f"{path}: too large to evaluate: {path} has {count} entries (limit: 200)",)


@pytest.mark.parametrize(("outer", "inner"), [(201, 1), (20, 11)])
def test_templates_of_an_added_kind_have_the_same_limit_together(outer: int, inner: int) -> None:
    groups = [{"workers": [{"template": {"spec": {"containers": [GPU]}}}] * inner}] * outer
    obj = {"apiVersion": "example.com/v1", "kind": "Train", "metadata": {}, "spec": {"groups": groups}}
    added = {"apiVersion": "example.com/v1", "kind": "Train", "path": "spec.groups[*].workers[*].template"}
    (said,) = judge(obj, config={"pod_templates": [added]}).warnings
    assert said.startswith("spec.groups: too large to evaluate")


def test_templates_of_nested_objects_count_together() -> None:
    replicas = {f"w{n}": {"template": {"spec": {"containers": [GPU]}}} for n in range(101)}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": replicas}}
    spec = {"components": [{"template": job}] * 2}
    obj = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": {}, "spec": spec}
    (said,) = judge(obj).warnings
    path = "spec.components[1].template.spec.pytorchReplicaSpecs"
    assert said == f"{path}: too large to evaluate: {path} has 202 entries (limit: 200)"
    kind = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
    (found,) = bounds.too_many_templates(Request(kind, Operation.CREATE, obj))
    assert (found.grown, found.is_extreme) == (True, True)


def bounded_paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each list, of each map whose keys users choose, and of each text that policies parse."""
    if isinstance(value, dict):
        if "any" in value:
            yield path
        for key, member in value.items():
            yield from bounded_paths(member, (*path, key))
    elif isinstance(value, list):
        yield path
        for member in value:
            yield from bounded_paths(member, (*path, "*"))
    elif value == "long":
        yield path


def filled(value: Any, path: tuple[str, ...], size: int) -> Any:
    """Return the object with this many entries or characters at a path."""
    if not path:
        if isinstance(value, dict):
            return dict.fromkeys(map(str, range(size)))
        return "x" * size if isinstance(value, str) else [None] * size
    if path[0] == "*":
        return [filled(value[0], path[1:], size)]
    return {**value, path[0]: filled(value[path[0]], path[1:], size)}


METADATA: Final = {
    f"metadata.{name}": bounds.bounded()["", "Pod"][f"metadata.{name}"]
    for name in ("annotations", "finalizers", "labels", "ownerReferences")
}
WHOLE: Final = yaml.safe_load(Path(__file__).with_name("whole_objects.yaml").read_text())


@pytest.mark.parametrize("obj", WHOLE, ids=lambda obj: obj["kind"])
def test_every_list_and_text_that_policies_read_has_a_bound(obj: Any) -> None:
    kind = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
    known = bounds.bounded().get((kind.group, kind.kind), METADATA)
    paths = {".".join(path): path for path in bounded_paths(obj)}
    assert known.keys() == paths.keys()
    for dotted, path in paths.items():
        most = known[dotted]
        at, above = (
            bounds.too_large(Request(kind, Operation.CREATE, filled(obj, path, size)).subjects, ())
            for size in (most, most + 1)
        )
        assert at == (), dotted
        unit = "characters" if path[-1] in {"expression", "query"} else "entries"
        said = f"too large to evaluate: {dotted.replace('.*', '[*]')} has {most + 1} {unit} (limit: {most})"
        where = path[: path.index("*")] if "*" in path else path
        assert [each.violation for each in above] == [
            Violation(where, said, hint="remove entries, or split the object")
        ]


def documented() -> Iterator[tuple[set[str], set[int]]]:
    """Yield the kinds of each row of the documented limits, with the limits; what is in parentheses is about others."""
    page = Path(__file__).parents[3] / "docs" / "reference" / "server-limits.md"
    table = page.read_text().partition("| kind | limits |")[2].partition("\n\n")[0]
    for row in table.strip().splitlines()[1:]:
        kinds, limits = row.strip("| ").split(" | ")
        numbers = re.findall(r"[\d,]*\d", re.sub(r"\(.*?\)", "", limits))
        yield set(kinds.split(", ")), {int(number.replace(",", "")) for number in numbers}


def test_the_bounds_are_those_of_the_documentation() -> None:
    rows = [({kind} if kind != "every kind" else set(), numbers) for kinds, numbers in documented() for kind in kinds]
    everywhere = next(numbers for kinds, numbers in rows if not kinds)
    by_kind = {kind: numbers for kinds, numbers in rows for kind in kinds}
    assert by_kind.pop("workload") == {bounds.MOST_TEMPLATES}
    for (_, kind), known in bounds.bounded().items():
        of_metadata = {most for path, most in known.items() if path.startswith("metadata.")}
        assert of_metadata in (everywhere, set()), kind
        others = {most for path, most in known.items() if "metadata." not in path or "triggers" in path}
        assert others == by_kind[kind] & others, kind
    named = {kind for _, kind in bounds.bounded()}
    assert {kind for kind in by_kind if kind not in named} == {"Pod template"}


@pytest.mark.parametrize(("entries", "is_extreme"), [(5_000, False), (5_001, True)])
def test_beyond_twenty_times_the_bound_it_is_extreme(entries: int, is_extreme: bool) -> None:  # noqa: FBT001 -- a table's column
    subjects = Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, pod(entries)).subjects
    assert [each.is_extreme for each in bounds.too_large(subjects, ())] == [is_extreme]


@pytest.mark.parametrize(("templates", "found"), [(100, 0), (101, 1)])
def test_what_templates_share_is_reported_beyond_twenty_times_the_bound(templates: int, found: int) -> None:
    kind = GroupVersionKind("argoproj.io", "v1alpha1", "Workflow")
    obj = workflow(templates, "volumes", entries=volumes(200))
    excesses = bounds.too_many_templates(Request(kind, Operation.CREATE, obj))
    assert [each.grown and each.is_extreme for each in excesses] == [True] * found
