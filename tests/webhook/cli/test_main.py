from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from gpugate import __version__
from gpugate.webhook.check import command as check
from gpugate.webhook.cli import main

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
    "why",
    "simulate",
    "fleet",
    "catalogue",
    "bench",
    "review",
    "explain",
    "policies",
    "new-policy",
    "config",
    "bundle",
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


_ARGUMENTS = "lists the arguments\n"

# What a new user types -> the whole answer.
USAGE = {
    "nothing": ("", ""),
    "a misspelt command": ("chek .", "error: unknown command chek\ndid you mean `gpugate check`? `gpugate --help` lists the commands\n"),
    "a command of another tool": ("lint .", "error: unknown command lint\ndid you mean `gpugate check`? `gpugate --help` lists the commands\n"),
    "a path without a command": ("/dev", "error: unknown command /dev\ndid you mean `gpugate check /dev`? `gpugate --help` lists the commands\n"),
    "an unknown command": ("frobnicate", "error: unknown command frobnicate\n`gpugate --help` lists the commands\n"),
    "the version as a command": ("version", "error: unknown command version\ndid you mean `gpugate --version`? `gpugate --help` lists the commands\n"),
    "a flag without a command": ("--verbos", "error: unknown flag --verbos\ndid you mean `gpugate --version`? `gpugate --help` lists the commands\n"),
    "a misspelt subcommand": ("webhook stats", "error: unknown subcommand stats\ndid you mean `gpugate webhook status`? `gpugate webhook --help` lists the subcommands\n"),
    "a misspelt subcommand of config": ("config shw", "error: show|init|schema: invalid value 'shw'; did you mean show?\nwrite show, init or schema\n"),
    "no subcommand": ("config", f"error: missing argument show|init|schema\n`gpugate config --help` {_ARGUMENTS}"),
    "a misspelt flag": ("check --slect x", f"error: unknown flag --slect\ndid you mean --select? `gpugate check --help` {_ARGUMENTS}"),
    "a misspelt flag with a value": ("check --outpt=json", f"error: unknown flag --outpt\ndid you mean --output? `gpugate check --help` {_ARGUMENTS}"),
    "a flag of other tools": ("check --format json", f"error: unknown flag --format\ndid you mean --output? `gpugate check --help` {_ARGUMENTS}"),
    "an abbreviated flag": ("check --sel pods/x", f"error: unknown flag --sel\ndid you mean --select? `gpugate check --help` {_ARGUMENTS}"),
    "an unknown flag": ("policies --xyz", f"error: unknown flag --xyz\n`gpugate policies --help` {_ARGUMENTS}"),
    "an argument too many": ("policies pods", f"error: unknown argument pods\n`gpugate policies --help` {_ARGUMENTS}"),
    "an unknown flag of config show": ("config show --wat", "error: unknown flag --wat\n`gpugate config show --help` lists the arguments\n"),
    "a flag without its value": ("check -o", "error: -o/--output: missing value FMT[=FILE]\n"),
    "a missing argument": ("explain", f"error: missing argument ID\n`gpugate explain --help` {_ARGUMENTS}"),
    "a misspelt value": ("check --group-by polcy", "error: --group-by: invalid value 'polcy'; did you mean policy?\nwrite policy, file or object\n"),
    "an unsupported shell": ("completion tcsh", "error: shell: invalid value 'tcsh'\nwrite bash, zsh, fish, powershell or kubectl\n"),
    "an invalid number": ("audit --top many", "error: --top: invalid number 'many': write 0 or more\n"),
    "flags that exclude each other": ("check --fix --diff", "error: --diff: not allowed with argument --fix\n"),
    "an unknown policy": ("explain pods/gpu-toleration", "error: unknown policy pods/gpu-toleration; did you mean pods/missing-gpu-toleration?\n"),
    "a missing policy file": ("check -p nowhere.yaml", "error: nowhere.yaml: no such file or directory\n"),
    "an unknown format": (
        "check -o sarf",
        "error: -o sarf: unknown format; did you mean sarif?\nwrite text, concise, json, github, gitlab, sarif, junit or markdown, with =FILE to write a file\n",
    ),
    "two formats for one output": ("check -o text -o json", "error: -o json: standard output already has format text; add =FILE to one\n"),
    "half of a certificate": ("serve --tls-cert a.pem", "error: --tls-cert and --tls-key go together\n"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE)
def test_wrong_usage_is_at_most_two_lines_and_exit_2(arguments: str, message: str, gpugate: Run) -> None:
    ran = gpugate(*arguments.split())

    assert (ran.code, ran.err) == (2, message)


NO_CLUSTER = {
    "audit": ", or audit a dump with --from DUMP",
    "doctor": "",
    "webhook status": "",
}


@pytest.mark.parametrize(("command", "alternative"), NO_CLUSTER.items(), ids=NO_CLUSTER)
def test_without_a_kubeconfig_the_error_says_what_the_command_can_do(
    command: str, alternative: str, gpugate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))

    ran = gpugate(*command.split())

    assert ran.code == 2
    assert ran.err.endswith(f": choose a kubeconfig with --kubeconfig FILE{alternative}\n")


def test_a_mistake_of_ours_is_no_denial(gpugate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(check, "main", broken)

    ran = gpugate("check", ".")

    assert ran.code == 2
    assert ran.err.endswith("error: this is a bug in gpugate, not in your input\n")


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "main", interrupted)

    assert main.run() == 130


def test_a_reader_that_goes_away_is_no_error(manifests: Path) -> None:
    command = f"{sys.executable} -m gpugate.webhook.cli.main check {manifests} | head -1"

    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)  # noqa: S603, S607 -- fixed words

    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")
