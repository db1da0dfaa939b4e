"""How commands are told from what they print, and how that is compared."""

from __future__ import annotations

import pytest
from documentation.console import Command, commands, programs
from documentation.shell import fits


@pytest.mark.parametrize(
    ("block", "found"),
    [
        ("$ a\nout\n$ b\n", [Command("a", "out", 0), Command("b", "", 2)]),
        ("$ a \\\n    b\nout\n", [Command("a \\\n    b", "out", 0)]),
        ("$ cat > f <<'EOF'\n$ no\nEOF\n$ b\n", [Command("cat > f <<'EOF'\n$ no\nEOF", "", 0), Command("b", "", 3)]),
        ("$ for x in a b; do\n    c $x\n  done\n", [Command("for x in a b; do\n    c $x\n  done", "", 0)]),
        ("$ jq 'a\n  b' f\n", [Command("jq 'a\n  b' f", "", 0)]),
    ],
    ids=["output", "continued", "here document", "loop", "quotation over lines"],
)
def test_a_block_holds_commands_and_what_they_print(block: str, found: list[Command]) -> None:
    assert commands(block) == found


@pytest.mark.parametrize("block", ["out\n$ a\n", "$ cat <<EOF\nx\n", "$ a 'b\n"])
def test_a_block_that_is_no_session_is_refused(block: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        commands(block)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a b | c -d", [["a", "b"], ["c", "-d"]]),
        ("A=1 b > file 2>&1; c", [["b"], ["c"]]),
        ("a '> x | y'   # said", [["a", "> x | y"]]),
        ("cat > f <<'EOF'\nrm -rf /\nEOF", [["cat"]]),
        ("for x in a b; do\n  c $x\ndone", [["for", "x", "in", "a", "b"], ["c", "$x"]]),
    ],
)
def test_a_command_calls_programs(text: str, found: list[list[str]]) -> None:
    assert list(programs(text)) == found


@pytest.mark.parametrize(
    ("shown", "printed", "fitting"),
    [
        ("a\nb", "a\nb\n", True),
        ("a", "a\nb\n", False),
        ("a\n...", "a\nb\nc\n", True),
        ("a\n...", "a\n", True),
        ("...\nc", "a\nb\nc\n", True),
        ("took ... s", "took 0.12 s\n", True),
        ("took ... s", "took 0.12 m\n", False),
        ("a.b", "axb\n", False),
    ],
)
def test_an_ellipsis_stands_for_lines_or_for_text(shown: str, printed: str, *, fitting: bool) -> None:
    assert fits(shown, printed) is fitting
