from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.fake_api_server import status
from cluster.reflected import DEPLOYMENTS, Reflected, deployment

from gpugate.policies.sdk.facts import Known
from gpugate.policies.sdk.objects import DEPLOYMENT
from gpugate.webhook.cluster import reflector as module

if TYPE_CHECKING:
    from cluster.fake_api_server import FakeApiServer


def test_the_watch_starts_at_the_resource_version_of_the_list(api: FakeApiServer, synced: Reflected) -> None:
    listed_at = api.store.revision
    api.store.put(DEPLOYMENTS, deployment("c"))

    synced.steps(1)

    _, _, lists, watch = api.requests
    assert lists == "GET /apis/apps/v1/deployments?limit=500"
    assert watch == (
        f"GET /apis/apps/v1/deployments?watch=true&allowWatchBookmarks=true&resourceVersion={listed_at}&timeoutSeconds=450"
    )
    assert synced.names == ["a", "b", "c"]


def test_only_fields_that_policies_read_are_kept(synced: Reflected) -> None:
    fact = synced.facts.list(DEPLOYMENT, "ml")

    assert isinstance(fact, Known)
    assert fact.by_name["a"].value == {
        "metadata": {"name": "a", "namespace": "ml"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"image": "i"}]}}},
    }


def test_every_change_is_applied(api: FakeApiServer, synced: Reflected) -> None:
    api.store.put(DEPLOYMENTS, deployment("c", "web"))
    api.store.put(DEPLOYMENTS, deployment("a", replicas=7))
    api.store.delete(DEPLOYMENTS, "ml", "b")

    synced.steps(1)

    fact = synced.facts.list(DEPLOYMENT)
    assert isinstance(fact, Known)
    assert [(i["metadata", "name"].text, i["spec", "replicas"].value) for i in fact.items] == [("a", 7), ("c", 1)]
    assert [state.objects for state in synced.reports] == [2, 3, 2]


def test_a_bookmark_advances_the_resource_version(api: FakeApiServer, synced: Reflected) -> None:
    api.store.bookmark()

    synced.steps(1)
    synced.steps(1)

    assert f"resourceVersion={api.store.revision}&" in api.requests[-1]
    assert [state.objects for state in synced.reports] == [2]


def test_large_lists_are_paged(api: FakeApiServer, synced: Reflected) -> None:
    for number in range(1201):
        api.store.put(DEPLOYMENTS, deployment(f"d{number:04}", "web"))
    synced.reflector._is_revision_invalid = True
    synced.reflector._next = module._Next.LIST

    synced.steps(1)

    assert len(api.asked("limit=500&continue=")) == 2
    assert len(synced.names) == 1203


def test_an_expired_page_restarts_the_list_without_pages(api: FakeApiServer, synced: Reflected) -> None:
    for number in range(600):
        api.store.put(DEPLOYMENTS, deployment(f"d{number:04}", "web"))
    api.answers.append(status("continue=", 410, "Expired"))
    synced.reflector._is_revision_invalid = True
    synced.reflector._next = module._Next.LIST

    waits = synced.steps(1)

    assert waits == [0.0]
    assert api.requests[-1] == "GET /apis/apps/v1/deployments"
    assert len(synced.names) == 602
