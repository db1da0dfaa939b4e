"""Completion at the prompt of real shells, and through kubectl."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from integrations.terminal import terminal

import tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integrations.terminal import Terminal

# How a shell is started without anybody's configuration, and what makes it complete.
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(gpugate completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit && compinit -u -D && source <(gpugate completion zsh)"),
    "fish": (["fish", "--no-config", "-i"], "gpugate completion fish | source"),
}
TYPED = {
    "a command": ("expl\t", "explain"),
    "a flag and an id": ("check --sel\tnodepools/single\t", "check|--select|nodepools/single-instance-type"),
    "a value behind an equals sign": ("check --color=al\t", "check|--color=always"),
    "a file": ("check po\t", "check|pods.yaml"),
    "a file behind a format": ("check -o sarif=ou\t", "check|-o|sarif=out.sarif"),
    "a subcommand": ("webhook wa\t--time\t", "webhook|wait|--timeout"),
}


@pytest.fixture
def environment(executables: Path, tmp_path: Path) -> dict[str, str]:
    """With a program `show` that says what it was given."""
    show = tmp_path / "bin" / "show"
    show.parent.mkdir()
    show.write_text('#!/bin/sh\nIFS="|"\nprintf "ran %s.\\n" "$*"\n')
    show.chmod(0o755)
    # Of two plugins kubectl says that one hides the other.
    others = [each for each in os.environ["PATH"].split(os.pathsep) if not (Path(each) / "kubectl-gpugate").exists()]
    path = os.pathsep.join((str(show.parent), str(executables), *others))
    return {"PATH": path, "HOME": str(tmp_path), "TERM": "xterm", "LC_ALL": "C.UTF-8"}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, environment: dict[str, str], tmp_path: Path) -> Iterator[Terminal]:
    command, setup = SHELLS[request.param]
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is missing; on Debian: apt-get install {command[0]}")
    work = tmp_path / "work"
    work.mkdir()
    for name in ("pods.yaml", "out.sarif"):
        (work / name).touch()
    with terminal(command, work, environment) as started:
        started.type(f"{setup}; echo rea''dy\r")
        started.until("ready")
        yield started


@pytest.mark.parametrize(("keys", "ran"), TYPED.values(), ids=TYPED)
def test_the_shell_completes(shell: Terminal, keys: str, ran: str) -> None:
    shell.type(f"gpugate {keys}\x01show \r")

    shell.until(f"ran gpugate|{ran}.")


@pytest.fixture
def kubectl() -> Path:
    found = tools.path("kubectl")
    if not found.exists():
        pytest.skip("kubectl is not built; make e2e-tools")
    return found


ASKED = {
    "a command": (["chec"], "check\tcheck manifests"),
    "a policy": (["explain", "nodepools/single"], "nodepools/single-instance-type\n:4\n"),
    "a file": (["check", ""], ":0\n"),
}


@pytest.mark.parametrize(("words", "answer"), ASKED.values(), ids=ASKED)
def test_kubectl_completes_the_plugin(
    words: list[str], answer: str, kubectl: Path, environment: dict[str, str]
) -> None:
    command = [str(kubectl), "__complete", "gpugate", *words]

    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603 -- fixed words

    assert ran.stdout.startswith(answer)


def test_kubectl_runs_the_plugin_which_calls_itself_so(kubectl: Path, environment: dict[str, str]) -> None:
    command = [str(kubectl), "gpugate", "check", "--help"]

    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603 -- fixed words

    assert ran.stdout.startswith("usage: kubectl gpugate check ")


def test_kubectl_lists_the_plugin(kubectl: Path, environment: dict[str, str], executables: Path) -> None:
    command = [str(kubectl), "plugin", "list"]

    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603 -- fixed words

    assert str(executables / "kubectl-gpugate") in ran.stdout
