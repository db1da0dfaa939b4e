from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from gpugate.webhook.check.flags import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    Run = Callable[..., Any]

TAGS = "nodeclasses/missing-cost-tags"


def test_every_format_at_once(gpugate: Run, manifests: Path, tmp_path: Path, configured: Path) -> None:
    flags = [flag for name in FORMATS for flag in ("-o", f"{name}={tmp_path}/{name}")]

    ran = gpugate("check", *flags, "--select", TAGS, "--policy-file", configured, manifests)

    texts = {name: (tmp_path / name).read_text() for name in FORMATS}
    assert (ran.code, ran.out) == (1, "")
    assert [name for name, text in texts.items() if TAGS not in text] == []
    assert json.loads(texts["json"])["summary"]["errors"] == len(json.loads(texts["sarif"])["runs"][0]["results"])
    # Three by the policy, and two objects that the API server refuses by their schemas.
    assert ET.fromstring(texts["junit"]).get("failures") == "5"  # noqa: S314 -- what was written a moment ago


def test_a_link_where_a_report_is_being_written_is_not_followed(
    gpugate: Run, manifests: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In a container the number of the process can be foreseen.
    monkeypatch.setattr("os.getpid", lambda: 7)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".report.json.7").symlink_to(victim)

    gpugate("check", "-o", f"json={tmp_path}/report.json", manifests)

    assert victim.read_text() == "mine"
