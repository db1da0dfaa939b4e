"""Certificates that gpugate keeps itself, on a real API server: from nothing, through promotions under load, to the end."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from cluster.kept_webhook import kept_webhook
from cluster.metrics import total
from gpu_pods import pod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.api import Answer, Api
    from cluster.control_plane import ControlPlane
    from cluster.kept_webhook import KeptWebhook

PROMOTIONS = 20
CLIENTS = 4
PATIENCE_SECONDS = 900
# What the API server counts when it does not get an answer that it can use (k8s.io/apiserver admission/metrics, v1.36).
FAILURES = {
    "apiserver_admission_webhook_fail_open_count": {},
    "apiserver_admission_webhook_rejection_count": {"error_type": "calling_webhook_error"},
    "apiserver_admission_webhook_rejection_count ": {"error_type": "apiserver_internal_error"},
}
REVIEWS = "gpugate_reviews_total"


@pytest.fixture(scope="module")
def kept(api: Api, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptWebhook]:
    name = f"kept-{uuid.uuid4().hex[:8]}"
    with kept_webhook(api, control_plane, tmp_path_factory.mktemp(name), name, replicas=2) as made:
        yield made


def failures(api: Api) -> dict[str, float]:
    text = api.request("GET", "/metrics").body["message"]
    found = {f"{name.strip()}{labels}": total(text, name.strip(), labels) for name, labels in FAILURES.items()}
    calls = "apiserver_admission_webhook_request_total"
    found["calls that got no answer"] = total(text, calls, {}) - total(text, calls, {"code": "200"})
    return found


def calls(api: Api) -> float:
    return total(api.request("GET", "/metrics").body["message"], "apiserver_admission_webhook_request_total", {})


class Stream:
    """Clients that create GPU Pods as dry runs, one after the other."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.refused: list[Answer] = []
        self.sent = itertools.count()
        self._api = api
        self._namespace = namespace
        self._ended = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._create) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in threads:
                thread.join()

    def _create(self) -> None:
        while not self._ended.is_set():
            answer = self._api.create(gpu_pod(f"pod-{next(self.sent)}", self._namespace), dry_run=True)
            if not answer.ok:
                self.refused.append(answer)


def gpu_pod(name: str, namespace: str) -> dict[str, Any]:
    return pod(name, namespace, {"nvidia.com/gpu": "1"})


def until(true: Callable[[], object]) -> float:
    """Wait until it is so; returns how many seconds that took."""
    started = time.monotonic()
    while not true():
        assert time.monotonic() - started < PATIENCE_SECONDS, "waited in vain"
        time.sleep(0.02)
    return time.monotonic() - started


def test_from_empty_bundles_on_the_api_server_trusts_it(kept: KeptWebhook, api: Api, namespace: str) -> None:
    phases = ("mutate", "validate")
    before = [kept.metric(REVIEWS, phase=phase) for phase in phases]
    assert api.create(gpu_pod("first", namespace), dry_run=True).message == ""
    assert [kept.metric(REVIEWS, phase=phase) for phase in phases] == [count + 1 for count in before]


def test_promotions_under_load_lose_no_admission(
    kept: KeptWebhook, api: Api, namespace: str, figures: list[str]
) -> None:
    before, called, handshakes = failures(api), calls(api), kept.metric("gpugate_server_events_total", event="accepted")
    stream, seen = Stream(api, namespace), {kept.promoted_at()}

    def promoted() -> bool:
        seen.add(kept.promoted_at())
        return len(seen) > PROMOTIONS

    with stream.running():
        seconds = until(promoted)
    accepted = kept.metric("gpugate_server_events_total", event="accepted") - handshakes
    figures.append(
        f"{len(seen) - 1} promotions in {seconds:.0f} s: {next(stream.sent)} admissions, {len(stream.refused)} failed; "
        f"{calls(api) - called:.0f} calls of the webhook over {accepted:.0f} connections"
    )
    assert [answer.message for answer in stream.refused] == []
    assert failures(api) == before


def test_configurations_made_again_are_trusted_again(kept: KeptWebhook, api: Api, figures: list[str]) -> None:
    for each in kept.configurations():
        api.delete(each)
    for each in kept.configurations():
        assert api.create(each).ok
    seconds = until(lambda: all(kept.bundles()))
    figures.append(f"configurations made again have their bundles after {seconds * 1000:.0f} ms")


def test_what_is_deleted_with_its_namespace(
    api: Api, control_plane: ControlPlane, kubectl: Any, tmp_path: Any, figures: list[str]
) -> None:
    name = f"kept-{uuid.uuid4().hex[:8]}"
    with kept_webhook(api, control_plane, tmp_path, name, replicas=1) as made:
        ran = kubectl("delete", "namespace", name)
        assert ran.returncode == 0, ran.stderr
        seconds = until(lambda: not any(map(api.get, made.configurations())))
    figures.append(f"configurations are gone {seconds:.1f} s after their namespace")
