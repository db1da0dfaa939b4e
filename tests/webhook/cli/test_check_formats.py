from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from gpugate.webhook.check.flags import FORMATS
from gpugate.webhook.cli.progress import MANY_FILES, progress

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


WATCHED: dict[str, tuple[type[io.StringIO], int, bool, bool]] = {
    "many files on a terminal": (Terminal, MANY_FILES, False, True),
    "few files": (Terminal, MANY_FILES - 1, False, False),
    "quiet": (Terminal, MANY_FILES, True, False),
    "no terminal": (io.StringIO, MANY_FILES, False, False),
}


@pytest.mark.parametrize(("stream", "files", "quiet", "shown"), WATCHED.values(), ids=WATCHED)
def test_a_long_run_shows_how_far_it_is_on_a_terminal(
    stream: type[io.StringIO], files: int, *, quiet: bool, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream())
    monkeypatch.setenv("TERM", "xterm")

    with progress(files, quiet=quiet) as step:
        step(2 * files)

    assert ("Checking" in sys.stderr.getvalue()) is shown  # type: ignore[attr-defined] # a StringIO


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
