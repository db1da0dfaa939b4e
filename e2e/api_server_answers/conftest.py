"""Fixtures: a webhook that answers as a test says, and the means to register it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stub_webhook.registration import Registrar
from stub_webhook.server import Stub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.api import Api


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[Stub]:
    with Stub(tmp_path) as running:
        yield running


@pytest.fixture
def registrar(api: Api, namespace: str, stub: Stub) -> Registrar:
    return Registrar(api, namespace, stub)
