from __future__ import annotations

import io
import sys

import pytest

from gpugate.policies.sdk.objects import NODE_POOL, POD
from gpugate.webhook.cli import progress as module
from gpugate.webhook.cli.progress import MANY_FILES, listing, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    @property
    def shown(self) -> list[str]:
        """What the line contained, one text after the other."""
        return [text.rstrip() for text in self.getvalue().split("\r")]


def watch(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Return a terminal as standard error; pytest replaces that between a fixture and its test."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setattr(module, "_PAUSE", 0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return made


HIDDEN: dict[str, tuple[type[io.StringIO], int, bool, str]] = {
    "few files": (Terminal, MANY_FILES - 1, False, "xterm"),
    "quiet": (Terminal, MANY_FILES, True, "xterm"),
    "no terminal": (io.StringIO, MANY_FILES, False, "xterm"),
    "a terminal without carriage returns": (Terminal, MANY_FILES, False, "dumb"),
}


@pytest.mark.parametrize(("stream", "files", "quiet", "term"), HIDDEN.values(), ids=HIDDEN)
def test_nothing_is_written_if_nobody_watches(
    stream: type[io.StringIO], files: int, *, quiet: bool, term: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stream()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", term)

    with progress(files, quiet=quiet) as step:
        step(2 * files)

    assert made.getvalue() == ""


def test_a_long_check_shows_its_share_and_removes_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watch(monkeypatch)
    with progress(MANY_FILES, quiet=False) as step:
        step(MANY_FILES)
        step(MANY_FILES)

    assert terminal.shown == ["", "Checking 200 files: 50%", "Checking 200 files: 100%", "", ""]
    assert terminal.getvalue().endswith(f"\r{' ' * len('Checking 200 files: 100%')}\r")


def test_a_reading_shows_the_objects_of_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watch(monkeypatch)
    with listing(quiet=False) as page:
        page(NODE_POOL, 3, None)
        page(POD, 500, 700)
        page(POD, 500, 200)

    assert terminal.shown == [
        "",
        "Reading nodepools: 3",
        "Reading pods: 500 of 1,200",
        "Reading pods: 1,000 of 1,200",
        "",
        "",
    ]


def test_a_text_is_cut_to_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watch(monkeypatch)
    monkeypatch.setenv("COLUMNS", "12")

    with progress(MANY_FILES, quiet=False) as step:
        step(1)

    assert terminal.shown[1] == "Checking 20"


def test_texts_that_follow_each_other_at_once_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watch(monkeypatch)
    monkeypatch.setattr(module, "_PAUSE", 3600)

    with progress(MANY_FILES, quiet=False) as step:
        for _ in range(MANY_FILES):
            step(2)

    assert terminal.shown == ["", "Checking 200 files: 0%", "", ""]


def test_the_line_is_removed_before_an_error_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watch(monkeypatch)

    def run() -> None:
        with progress(MANY_FILES, quiet=False) as step:
            step(1)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run()

    assert terminal.shown == ["", "Checking 200 files: 0%", "", ""]
