"""Commands that pages mark `cluster` are typed in a cluster, page by page, and print what the page shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import operated
import pytest
from documentation.blocks import blocks
from documentation.console import commands
from documentation.shell import fits, run

import tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane
    from cluster.served_webhook import ServedWebhook

_WORD = "cluster"
# What the chart calls both configurations when the release is called gpugate.
_NAME = "gpugate"
PAGES = sorted({block.page for block in blocks() if _WORD in block.words})


@pytest.fixture
def installed(
    api: Api, control_plane: ControlPlane, webhook: ServedWebhook, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    monkeypatch.setattr(operated, "NAME", _NAME)
    gpugate = operated.Operated(api, control_plane.admin_kubeconfig)
    with gpugate.registered(webhook.url, webhook.authority.read_bytes()):
        ran = gpugate.webhook("wait")
        assert ran.returncode == 0, ran.stderr
        yield


# In this order: both go by one name.
@pytest.mark.usefixtures("unregistered", "installed")
@pytest.mark.parametrize("page", PAGES)
def test_commands_do_in_a_cluster_what_their_page_shows(page: str, control_plane: ControlPlane, tmp_path: Path) -> None:
    marked = [block for block in blocks() if block.page == page and _WORD in block.words]
    typed = [(block, command) for block in marked for command in commands(block.text)]
    ran = run(
        [command for _, command in typed],
        tmp_path,
        [tools.path("kubectl").parent],
        KUBECONFIG=str(control_plane.admin_kubeconfig),
    )
    for (block, command), (text, code) in zip(typed, ran, strict=True):
        said = f"{block}: $ {command.text}\n{text}(exit code {code})"
        # 1 is an answer too, such as that admission is off; more is a mistake in the page.
        assert code in {0, 1}, said
        assert fits(command.output, text) if command.output else not text, said
