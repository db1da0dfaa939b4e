from __future__ import annotations

import shutil
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.cli import completing
from gpugate.webhook.cli.completion import script
from gpugate.webhook.cli.main import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

ASKED = {
    "a command": (["chec"], "check\tcheck manifests, charts and kustomizations on disk\n:4\n"),
    "nothing yet": (["--v"], "--version\tshow the version\n:4\n"),
    "a subcommand": (["webhook", "wa"], None),
    "a policy": (["explain", "nodepools/single"], "nodepools/single-instance-type\n:4\n"),
    "a policy of a flag": (["check", "--select", "nodepools/single"], "nodepools/single-instance-type\n:4\n"),
    "a format": (["check", "-o", "sar"], "sarif\n:4\n"),
    "a format of another command": (["audit", "-o", "prom"], "prometheus\n:4\n"),
    "a file": (["check", ""], ":0\n"),
    "an unknown command": (["chekc", ""], ":4\n"),
    "an unknown subcommand": (["webhook", "wat", "--"], ":4\n"),
}


@pytest.mark.parametrize(("words", "answer"), ASKED.values(), ids=ASKED)
def test_a_shell_is_answered(words: list[str], answer: str | None, gpugate: Run) -> None:
    ran = gpugate("__complete", *words)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == answer if answer else ran.out.startswith("wait\t")


def test_without_a_word_every_command_is_offered(gpugate: Run) -> None:
    listed = [line.partition("\t")[0] for line in gpugate("__complete").out.splitlines()]

    assert listed == [*COMMANDS, ":4"]


def test_kubectl_is_answered_alike(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-gpugate", "check", "-o", "sar"])

    assert (completing.run(), capsys.readouterr().out) == (0, "sarif\n:4\n")


SHELLS = ["bash", "zsh", "fish", "powershell", "kubectl"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_asks_the_program(shell: str, gpugate: Run) -> None:
    ran = gpugate("completion", shell)

    assert ran.code == 0
    assert "gpugate __complete" in ran.out or '"$1" __complete' in ran.out


def test_an_unknown_shell_is_refused(gpugate: Run) -> None:
    ran = gpugate("completion", "tcsh")

    assert (ran.code, "invalid value 'tcsh'" in ran.err) == (2, True)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The program as an executable, whatever environment the tests run in."""
    file = tmp_path / "bin" / "gpugate"
    file.parent.mkdir()
    file.write_text(f"#!{sys.executable}\nimport sys\nfrom gpugate.webhook.cli.main import run\nsys.exit(run())\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "pods.yaml").touch()
    (tmp_path / "work" / "out.sarif").touch()
    return file


# How bash splits a line, and what it offers in the place of the last part.
BASH = {
    "a command": (["expl"], ["explain"]),
    "a flag": (["check", "--sel"], ["--select"]),
    "a value behind an equals sign": (["check", "--color", "=", "al"], ["always"]),
    "every value": (["check", "--color", "="], ["auto", "always", "never"]),
    "an id": (["check", "--select", "nodepools/single"], ["nodepools/single-instance-type"]),
    "a file": (["check", "po"], ["pods.yaml"]),
    "a file behind a format": (["check", "-o", "sarif", "=", "ou"], ["out.sarif"]),
}


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is missing")
@pytest.mark.parametrize(("words", "offered"), BASH.values(), ids=BASH)
def test_bash_offers(words: list[str], offered: list[str], program: Path, tmp_path: Path) -> None:
    body = f"""{script("bash")}
COMP_WORDS=(gpugate "$@"); COMP_CWORD=$#
_gpugate_complete {program}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    command = ["bash", "--norc", "-c", body, "bash", *words]

    ran = subprocess.run(command, cwd=tmp_path / "work", capture_output=True, text=True, check=True)  # noqa: S603 -- fixed words

    assert (ran.stdout.splitlines(), ran.stderr) == (offered, "")


FISH = {
    "a command": ("gpugate expl", ["explain"]),
    "a flag": ("gpugate check --sel", ["--select"]),
    "a value behind an equals sign": ("gpugate check --color=al", ["--color=always"]),
    "a file": ("gpugate check po", ["pods.yaml"]),
    "a file behind a format": ("gpugate check -o sarif=ou", ["sarif=out.sarif"]),
}


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is missing; on Debian: apt-get install fish")
@pytest.mark.parametrize(("line", "offered"), FISH.values(), ids=FISH)
def test_fish_offers(line: str, offered: list[str], program: Path, tmp_path: Path) -> None:
    body = f"{script('fish')}\ncomplete -C '{line}'"
    environment = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(tmp_path)}

    ran = subprocess.run(  # noqa: S603 -- fixed words
        ["fish", "--no-config", "-c", body],  # noqa: S607 -- the fish of whoever runs this
        cwd=tmp_path / "work",
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert ([shown.partition("\t")[0] for shown in ran.stdout.splitlines()], ran.stderr) == (offered, "")


@pytest.mark.skipif(
    not shutil.which("shellcheck"), reason="shellcheck is missing; on Debian: apt-get install shellcheck"
)
@pytest.mark.parametrize("shell", ["bash", "kubectl"])
def test_shellcheck_finds_nothing(shell: str) -> None:
    command = ["shellcheck", "--shell", "bash" if shell == "bash" else "sh", "-"]

    ran = subprocess.run(command, input=script(shell), capture_output=True, text=True, check=False)  # noqa: S603 -- fixed words

    assert ran.stdout == ""
