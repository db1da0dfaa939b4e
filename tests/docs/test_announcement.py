"""What a page shows of a server that starts is what a server says."""

from __future__ import annotations

from pathlib import Path

from gpugate import __version__
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.admission import serve

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "run-the-webhook.md"


def test_the_policies_of_a_server_without_a_policy_file() -> None:
    announced = serve._summary(bind(CATALOG, PolicyConfig()))

    assert f"\ngpugate {__version__} with {announced}\n" in PAGE.read_text()
