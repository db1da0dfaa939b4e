"""Test that a real API server accepts all rendered objects without a warning, and stores every field of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from chart.conftest import CASES, NAMESPACE
from cluster.namespaces import made_namespaces

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chart.conftest import Helm
    from cluster.api import Api
    from cluster.served_webhook import ServedWebhook

# Whose definitions are not installed here.
OF_OTHERS = {"Certificate", "Issuer", "PrometheusRule", "ServiceMonitor"}


@pytest.fixture(scope="module", autouse=True)
def _namespaces(api: Api, webhook: ServedWebhook) -> Iterator[None]:
    webhook.unregister()
    with made_namespaces(api, NAMESPACE, "inference", "notebooks"):
        yield
    webhook.register()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_every_object_is_accepted_without_changes(api: Api, helm: Helm, case: Path) -> None:
    wrong: dict[str, Any] = {}
    rendered = helm.objects("--values", case)
    for each in rendered:
        # A Pod is refused before it is there.
        if each["kind"] == "ServiceAccount":
            api.apply(each, force=True)
    for each in rendered:
        if each["kind"] in {*OF_OTHERS, "ServiceAccount"}:
            continue
        answer = api.create(each, dry_run=True)
        if not answer.ok or answer.warnings:
            wrong[f"{each['kind']} {each['metadata']['name']}"] = answer.message or answer.warnings
        elif lost := list(not_stored(each, answer.body)):
            wrong[f"{each['kind']} {each['metadata']['name']}"] = lost
    assert wrong == {}


def not_stored(written: Any, stored: Any, path: str = "") -> Iterator[str]:
    """Yield the fields that the API server stores otherwise or not at all: to Argo CD each is a difference forever."""
    if isinstance(written, dict) and isinstance(stored, dict):
        for key, value in written.items():
            if key in stored:
                yield from not_stored(value, stored[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}: {value!r}"
    elif isinstance(written, list) and isinstance(stored, list):
        for number, (one, other) in enumerate(zip(written, stored, strict=False)):
            yield from not_stored(one, other, f"{path}[{number}]")
    elif written != stored:
        yield f"{path}: {written!r}, stored as {stored!r}"
