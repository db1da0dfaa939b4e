"""`gpugate webhook disable`, `enable` and `uninstall` under a webhook that is asked."""

from __future__ import annotations

import copy
import time
from typing import TYPE_CHECKING, Any

import pytest
from cluster.ports import free_ports
from operated import Operated
from violating import node_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.api import Api
    from cluster.control_plane import ControlPlane
    from cluster.served_webhook import ServedWebhook

Json = dict[str, Any]
_PATIENCE_SECONDS = 90

pytestmark = pytest.mark.usefixtures("unregistered")


@pytest.fixture
def operated(api: Api, control_plane: ControlPlane) -> Operated:
    return Operated(api, control_plane.admin_kubeconfig)


@pytest.fixture
def served(operated: Operated, webhook: ServedWebhook) -> Iterator[list[Json]]:
    with operated.registered(webhook.url, webhook.authority.read_bytes()) as applied:
        ran = operated.webhook("wait")
        assert ran.returncode == 0, ran.stderr
        yield applied


@pytest.fixture
def unserved(api: Api, operated: Operated, webhook: ServedWebhook) -> Iterator[list[Json]]:
    """Registered with failurePolicy Fail, and nobody there."""
    with operated.registered(f"https://127.0.0.1:{free_ports(1)[0]}", webhook.authority.read_bytes()) as applied:
        assert seconds_until(lambda: not passes(api)) < _PATIENCE_SECONDS
        yield applied


def passes(api: Api) -> bool:
    """Tell whether something can be created that every policy would have to be asked about."""
    return api.create(node_pool(), dry_run=True).ok


def seconds_until(condition: Any) -> float:
    """Return after how many seconds it is so."""
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > _PATIENCE_SECONDS:
            break
        time.sleep(0.01)
    return time.monotonic() - started


@pytest.mark.usefixtures("unserved")
def test_what_was_held_up_passes_at_once(api: Api, operated: Operated) -> None:
    ran = operated.webhook("disable", "--yes", "--reason", "GPU Pods do not start")
    seconds = seconds_until(lambda: passes(api))

    assert (ran.returncode, ran.stderr) == (0, "")
    assert seconds < _PATIENCE_SECONDS
    said = [each["metadata"]["annotations"] for each in operated.live()]
    assert [each["gpugate.dev/disabled-reason"] for each in said] == ["GPU Pods do not start"] * 2
    assert [each["gpugate.dev/disabled-by"] for each in said] == ["admin"] * 2


@pytest.mark.usefixtures("served")
def test_nothing_is_sent_while_it_is_off(api: Api, operated: Operated, webhook: ServedWebhook) -> None:
    operated.webhook("disable", "--yes")

    def heard() -> bool:
        before = webhook.metric("gpugate_reviews_total")
        return passes(api) and webhook.metric("gpugate_reviews_total") == before

    # The API server hears of either configuration by itself.
    seconds_until(heard)
    before = webhook.metric("gpugate_reviews_total")
    for _ in range(20):
        assert passes(api)
    assert webhook.metric("gpugate_reviews_total") == before


def test_enable_leaves_what_was_there_before(api: Api, operated: Operated, served: list[Json]) -> None:
    before = [_content(each) for each in operated.live()]
    assert len(before) == len(served)
    operated.webhook("disable", "--yes")
    off = [_content(each) for each in operated.live()]
    assert off != before
    seconds_until(lambda: passes(api))

    ran = operated.webhook("enable")

    assert ran.returncode == 0, ran.stderr
    assert [_content(each) for each in operated.live()] == before
    assert seconds_until(lambda: not passes(api)) < _PATIENCE_SECONDS


def test_applying_the_chart_again_does_not_turn_it_on(api: Api, operated: Operated, served: list[Json]) -> None:
    operated.webhook("disable", "--yes")
    assert seconds_until(lambda: passes(api)) < _PATIENCE_SECONDS
    changed = copy.deepcopy(served)
    for configuration in changed:
        for entry in configuration["webhooks"]:
            entry["timeoutSeconds"] = 7
        operated.apply(configuration)

    off = operated.webhook("wait")

    assert "but admission is off" in off.stdout, off.stderr
    assert {e["timeoutSeconds"] for each in operated.live() for e in each["webhooks"]} == {7}
    assert passes(api)


@pytest.mark.usefixtures("unserved")
def test_it_is_not_turned_on_for_a_webhook_that_is_not_reached(api: Api, operated: Operated) -> None:
    operated.webhook("disable", "--yes")
    seconds_until(lambda: passes(api))

    refused = operated.webhook("enable")
    assert refused.returncode == 1
    assert "no process listens at this address" in refused.stderr
    assert passes(api)

    assert operated.webhook("enable", "--force").returncode == 0
    assert seconds_until(lambda: not passes(api)) < _PATIENCE_SECONDS


@pytest.mark.usefixtures("unserved")
def test_a_large_pod_passes_too(api: Api, operated: Operated, namespace: str) -> None:
    variables = [{"name": f"A{number}", "value": "x"} for number in range(8000)]
    containers = [{"name": f"c{number}", "image": "i", "env": variables} for number in range(10)]
    metadata = {"name": "large", "namespace": namespace}
    # 2.6 MB: evaluating every condition costs the API server the most, and it does so for entries that are off too.
    large = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}
    operated.webhook("disable", "--yes")
    seconds_until(lambda: passes(api))

    answer = api.create(large, dry_run=True)
    assert answer.ok, answer.message


@pytest.mark.usefixtures("served")
def test_a_dry_run_changes_nothing(operated: Operated) -> None:
    before = operated.live()

    ran = operated.webhook("disable", "--dry-run")

    assert ran.returncode == 0
    assert "disabled-by-gpugate" in ran.stdout
    assert operated.live() == before


@pytest.mark.usefixtures("served")
def test_nobody_at_a_terminal(operated: Operated) -> None:
    ran = operated.webhook("disable")

    assert (ran.returncode, "confirm with --yes" in ran.stderr) == (2, True)


@pytest.mark.usefixtures("unserved")
def test_uninstall_lets_everything_through(api: Api, operated: Operated) -> None:
    first, again = operated.webhook("uninstall", "--yes"), operated.webhook("uninstall", "--yes")

    assert (first.returncode, again.returncode) == (0, 0), first.stderr
    assert operated.live() == []
    assert seconds_until(lambda: passes(api)) < _PATIENCE_SECONDS


def test_uninstall_leaves_what_is_not_ours(api: Api, operated: Operated, served: list[Json]) -> None:
    for each in served:
        api.patch(each, {"metadata": {"labels": {"app.kubernetes.io/name": "another"}}})

    ran, hook = operated.webhook("uninstall", "--yes"), operated.webhook("uninstall", "--best-effort")

    assert (ran.returncode, hook.returncode) == (1, 0)
    assert "does not belong to gpugate" in hook.stderr
    assert len(operated.live()) == 2


def _content(configuration: Json) -> Json:
    metadata = {key: configuration["metadata"].get(key) for key in ("name", "labels", "annotations")}
    return {"metadata": metadata, "webhooks": configuration["webhooks"]}
