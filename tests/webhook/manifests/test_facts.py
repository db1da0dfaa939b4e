from __future__ import annotations

import pytest

from gpugate.policies.sdk.facts import Known
from gpugate.policies.sdk.objects import NODE_POOL, POD, GroupVersionKind, Operation, Request
from gpugate.webhook.manifests.load import RunFacts, installer_fact
from gpugate.webhook.manifests.placeholders import sealed


def request(api_version: str, kind: str, name: str, namespace: str = "") -> Request:
    return Request(
        GroupVersionKind.of(api_version, kind),
        Operation.CREATE,
        {"metadata": {"name": name}},
        name=name,
        namespace=namespace,
    )


REQUESTS = [
    request("v1", "Pod", "a", "ml"),
    request("v1", "Pod", "b", "web"),
    request("karpenter.sh/v1beta1", "NodePool", "old"),
]
LOOKUPS = {
    "of every namespace": (POD, None, ["a", "b"]),
    "of one namespace": (POD, "ml", ["a"]),
    "of a namespace without any": (POD, "other", []),
    "of a version with another shape": (NODE_POOL, None, []),
}


@pytest.mark.parametrize(("kind", "namespace", "names"), LOOKUPS.values(), ids=LOOKUPS)
def test_the_objects_of_a_run_are_facts(kind: object, namespace: str | None, names: list[str]) -> None:
    fact = RunFacts(REQUESTS).list(kind, namespace)  # type: ignore[arg-type] # the table mixes types

    assert isinstance(fact, Known)
    assert [item["metadata", "name"].text for item in fact.items] == names


@pytest.mark.parametrize("complete", [True, False])
def test_they_are_all_there_is_only_when_the_user_says_so(complete: bool) -> None:  # noqa: FBT001 -- a table's column
    fact = RunFacts(REQUESTS, complete=complete).list(POD)

    assert isinstance(fact, Known)
    assert fact.complete is complete


def test_what_a_chart_installs_is_not_among_them() -> None:
    source = {"chart": "gpu-operator"}
    kind = GroupVersionKind.of("argoproj.io/v1alpha1", "Application")
    installed = installer_fact(Request(kind, Operation.CREATE, {"spec": {"source": source}}, name="operator"))
    assert installed is not None

    facts = RunFacts([*REQUESTS, installed], complete=True)

    found = [facts.list(POD), facts.list(POD, "other"), facts.list(NODE_POOL)]
    assert [isinstance(fact, Known) and fact.complete for fact in found] == [False, False, False]
    assert (
        installer_fact(Request(kind, Operation.CREATE, {"spec": {"source": {"path": "pools"}}}, name="pools")) is None
    )


OPEN_NAMESPACES = {
    "of an object": ([*REQUESTS, request("v1", "Pod", "c", sealed("${NS}"))], "ml"),
    "looked up": (REQUESTS, sealed("${NS}")),
}


@pytest.mark.parametrize(("requests", "namespace"), OPEN_NAMESPACES.values(), ids=OPEN_NAMESPACES)
def test_they_are_not_all_where_the_name_of_a_namespace_is_not_known(requests: list[Request], namespace: str) -> None:
    fact = RunFacts(requests, complete=True).list(POD, namespace)

    assert isinstance(fact, Known)
    assert not fact.complete
