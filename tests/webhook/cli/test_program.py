from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.cli.main import COMMANDS
from gpugate.webhook.cli.program import called, program

if TYPE_CHECKING:
    from collections.abc import Callable

CALLED = {
    "the console script": ("/usr/local/bin/gpugate", "gpugate"),
    "a plugin of kubectl": ("/usr/local/bin/kubectl-gpugate", "kubectl gpugate"),
    "a plugin on Windows": ("kubectl-gpugate.exe", "kubectl gpugate"),
    "a module": ("webhook/cli/main.py", "gpugate"),
    "something named alike": ("/opt/kubectl-gpugate-old", "gpugate"),
}


@pytest.mark.parametrize(("executable", "name"), CALLED.values(), ids=CALLED)
def test_the_name_is_that_by_which_it_was_called(executable: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [executable])

    assert program() == name


TEXTS = {
    "a call": ("run `gpugate check .`", "run `kubectl gpugate check .`"),
    "a pipe": ("helm template x | gpugate check -", "helm template x | kubectl gpugate check -"),
    "a call of kubectl already": ("kubectl gpugate audit", "kubectl gpugate audit"),
    "a flag": ("`gpugate --help` lists them", "`kubectl gpugate --help` lists them"),
    "the webhook": ("nothing waits for gpugate any more", "nothing waits for gpugate any more"),
    "a namespace": ("-n gpugate webhook", "-n gpugate webhook"),
    "a path": ("charts/gpugate check it", "charts/gpugate check it"),
}


@pytest.mark.parametrize(("text", "shown"), TEXTS.values(), ids=TEXTS)
def test_texts_call_the_plugin_as_its_user_does(text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl-gpugate"])

    assert called(text, COMMANDS) == shown


HELP = {
    "the program": (["--help"], "\nusage: kubectl gpugate COMMAND"),
    "a command": (["check", "--help"], "usage: kubectl gpugate check "),
    "a subcommand": (["config", "show", "--help"], "usage: kubectl gpugate config show "),
    "a command with commands": (["webhook", "--help"], "usage: kubectl gpugate webhook SUBCOMMAND"),
    "one of those": (["webhook", "wait", "--help"], "usage: kubectl gpugate webhook wait "),
}


@pytest.mark.parametrize(("arguments", "usage"), HELP.values(), ids=HELP)
def test_the_usage_of_the_plugin_names_kubectl(
    arguments: list[str], usage: str, monkeypatch: pytest.MonkeyPatch, gpugate: Callable[..., Any]
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/kubectl-gpugate", *arguments])

    assert usage in gpugate(*arguments).out


def test_mistakes_are_explained_with_the_name_of_the_plugin(
    monkeypatch: pytest.MonkeyPatch, gpugate: Callable[..., Any]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl-gpugate"])

    assert gpugate("explain", "pods/x").err.endswith("`kubectl gpugate policies` lists them\n")
