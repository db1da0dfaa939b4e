"""Let every replica hold the Lease: none sees the Lease of another, and each write succeeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.fake_api_store import StatusError, Store
from kept.cluster import LEASES

if TYPE_CHECKING:
    from cluster.fake_api_store import Json


class LyingStore(Store):
    def get(self, plural: tuple[str, str], namespace: str, name: str) -> Json:
        if plural == LEASES:
            raise StatusError(404, "NotFound")
        return super().get(plural, namespace, name)

    def create(self, plural: tuple[str, str], obj: Json) -> Json:
        return self.put(plural, obj) if plural == LEASES else super().create(plural, obj)

    def update(self, plural: tuple[str, str], obj: Json) -> Json:
        return self.put(plural, obj) if plural == LEASES else super().update(plural, obj)
