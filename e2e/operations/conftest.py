"""Everything is enforced here, and objects can be stored as if gpugate had come after them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.api import Api
    from cluster.served_webhook import ServedWebhook

EVERYTHING_ENFORCED = """
apiVersion: gpugate.dev/v1
kind: PolicyConfig
policies:
  "*/*": {mode: enforce}
"""


class StoreBefore(Protocol):
    """Stores objects while gpugate is not registered, and returns them as they are stored."""

    def __call__(self, *objects: dict[str, Any]) -> list[dict[str, Any]]: ...


@pytest.fixture(scope="module", autouse=True)
def everything_enforced(webhook: ServedWebhook) -> Iterator[None]:
    webhook.use(EVERYTHING_ENFORCED)
    yield
    webhook.reset()


@pytest.fixture
def store_before(api: Api, webhook: ServedWebhook) -> Iterator[StoreBefore]:
    kept: list[dict[str, Any]] = []

    def store(*objects: dict[str, Any]) -> list[dict[str, Any]]:
        webhook.unregister()
        try:
            answers = [api.create(each) for each in objects]
        finally:
            webhook.register()
        for answer in answers:
            assert answer.ok, answer.message
        kept.extend(objects)
        return [answer.body for answer in answers]

    yield store
    for each in kept:
        if not each["metadata"].get("namespace"):
            api.delete(each)
