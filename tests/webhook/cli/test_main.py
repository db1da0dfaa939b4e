from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from gpugate import __version__
from gpugate.webhook.cli import check, main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_one_line(flag: str, gpugate: Run) -> None:
    assert gpugate(flag) == (0, f"gpugate {__version__}\n", "")


COMMANDS = [
    "check",
    "test",
    "audit",
    "review",
    "explain",
    "policies",
    "config",
    "schema",
    "registration",
    "doctor",
    "serve",
    "webhook",
    "completion",
]


@pytest.mark.parametrize("flag", ["--help", "-h", "help"])
def test_the_help_lists_every_command(flag: str, gpugate: Run) -> None:
    ran = gpugate(flag)

    listed = [line.split()[0] for line in ran.out.splitlines() if line.startswith("  ")]
    assert ran.code == 0
    assert listed[: len(COMMANDS)] == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, gpugate: Run) -> None:
    ran = gpugate(command, "--help")

    assert (ran.code, ran.out.startswith(f"usage: gpugate {command}")) == (0, True)


USAGE = {
    "nothing": ([], ""),
    "unknown command": (["chek"], "error: no command is called chek; `gpugate --help` lists them\n"),
    "unknown policy": (
        ["explain", "pods/gpu-toleration"],
        "error: no policy is called pods/gpu-toleration; did you mean pods/missing-gpu-toleration?\n",
    ),
    "missing policy file": (
        ["check", "-p", "nowhere.yaml"],
        "error: nowhere.yaml: no such file or directory\n",
    ),
    "unknown format": (
        ["check", "-o", "sarf"],
        "error: -o sarf: write text, concise, json, github, gitlab, sarif, junit or markdown, with =FILE to write a file\n",
    ),
    "two formats for one output": (
        ["check", "-o", "text", "-o", "json"],
        "error: -o json: standard output already gets text; add =FILE to one\n",
    ),
    "half of a certificate": (["serve", "--tls-cert", "a.pem"], "error: --tls-cert and --tls-key go together\n"),
}


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE)
def test_wrong_usage_is_one_line_and_exit_2(arguments: list[str], message: str, gpugate: Run) -> None:
    ran = gpugate(*arguments)

    assert (ran.code, ran.err) == (2, message)


def test_a_mistake_of_ours_is_no_denial(gpugate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(check, "main", broken)

    ran = gpugate("check", ".")

    assert ran.code == 2
    assert ran.err.endswith("error: this is a mistake in gpugate, not in what you gave it\n")


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "main", interrupted)

    assert main.run() == 130


def test_a_reader_that_goes_away_is_no_error(manifests: Path) -> None:
    command = f"{sys.executable} -m gpugate.webhook.cli.main check {manifests} | head -1"

    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)  # noqa: S603, S607 -- fixed words

    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")
