"""A cluster, and `gpugate webhook` on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from operate.fake_installation import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Without any installation."""
    made = Cluster()
    yield made
    made.stop()


@pytest.fixture
def installed(cluster: Cluster) -> Cluster:
    cluster.install()
    return cluster


@pytest.fixture
def webhook(gpugate: Callable[..., Any], cluster: Cluster, tmp_path: Path) -> Callable[..., Any]:
    """Run a subcommand on the cluster."""
    cluster.start()
    file = cluster.kubeconfig(tmp_path / "kubeconfig")
    return lambda *arguments: gpugate("webhook", *arguments, "--kubeconfig", file)


@pytest.fixture
def nonce(monkeypatch: pytest.MonkeyPatch) -> str:
    """That of every probe, so that its answer can be said beforehand."""
    known = "ab" * 16
    monkeypatch.setattr("gpugate.webhook.operate.waiting.secrets.token_hex", lambda _: known)
    return known
