"""Holds a command line that is not run against the programs that there are: command, flags, targets, values."""

from __future__ import annotations

import contextlib
import io
import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import yaml

from documentation.blocks import ROOT
from documentation.helm_values import values_mistake
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.cli.parsers import parsers

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

# Programs that are not ours, with the subcommands that pages use: a new one is added here by whoever has tried it.
_VERBS: Final = {
    "docker": {"buildx", "build", "run"},
    "git": {"switch", "add", "clone", "commit", "diff", "init", "log", "status", "submodule"},
    "helm": {"install", "package", "push", "rollback", "template", "test", "uninstall", "upgrade"},
    "kind": {"create", "delete", "load"},
    "kubectl": {
        "annotate",
        "apply",
        "create",
        "delete",
        "describe",
        "get",
        "label",
        "logs",
        "port-forward",
        "replace",
        "rollout",
        "wait",
    },
    "pip": {"install"},
    "pipx": {"install"},
    "pre-commit": {"autoupdate", "install", "run", "try-repo"},
}
_PLAIN: Final = {
    *(
        "cat",
        "cd",
        "cp",
        "curl",
        "diff",
        "echo",
        "grep",
        "head",
        "jq",
        "ls",
        "mkdir",
        "mv",
        "openssl",
        "pytest",
        "python3",
        "rm",
        "source",
    ),
    *("tail", "tee", "test", "true", "uname"),
}
_OPENS_LOOP: Final = "for"
_TARGET: Final = re.compile(r"^([a-z0-9-]+):", re.MULTILINE)
_EXTRA: Final = re.compile(r"(?:gpugate|\.)\[(?P<extras>[\w,]+)\]")
# A path, a URL, or a name that a URL stands behind: what pip does not look for in an index.
_NOT_OF_AN_INDEX: Final = re.compile(r"[./].*|[a-z+]+://.*|[\w-]+(?:\[[\w,]+\])? @ [a-z+]+://.*")


def mistake(words: Sequence[str]) -> str:
    """Return what is wrong with a call of a program; empty when nothing is."""
    program = words[0].rpartition("/")[2]
    if program in {"gpugate", "kubectl-gpugate"}:
        return _of_gpugate(words[1:])
    if list(words[:2]) == ["kubectl", "gpugate"]:
        return _of_gpugate(words[2:])
    if program in _CHECKED:
        return _CHECKED[program](words[1:])
    if program in _VERBS:
        verb = next((word for word in words[1:] if not word.startswith("-")), "")
        return "" if verb in _VERBS[program] else f"{program} has no {verb or 'command'} that pages use"
    return "" if program in _PLAIN or program == _OPENS_LOOP else f"nobody knows the program {program}"


@cache
def _parsers() -> dict[str, argparse.ArgumentParser]:
    return parsers()


def _of_gpugate(arguments: Sequence[str]) -> str:
    if not arguments or arguments[0] in {"--help", "-h", "--version", "-V", "help"}:
        return ""
    known = _parsers()
    # The longest that fits: `config show` is a command, and so is `config`. A parser with subparsers reads them itself.
    name = next((" ".join(arguments[:count]) for count in (1, 2) if " ".join(arguments[:count]) in known), "")
    if not name:
        return f"gpugate has no command {arguments[0]}"
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            known[name].parse_args(list(arguments[len(name.split()) :]))
    except UsageError as error:
        return str(error)
    except SystemExit:  # --help
        return ""
    return ""


def _of_make(arguments: Sequence[str]) -> str:
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text()))
    missing = [word for word in arguments if "=" not in word and not word.startswith("-") and word not in targets]
    return f"the Makefile has no target {', '.join(missing)}" if missing else ""


def _of_pip(arguments: Sequence[str]) -> str:
    extras = set(re.findall(r"^(\w+) = \[", _optional_dependencies(), re.MULTILINE))
    for word in arguments[1:]:
        found = _EXTRA.match(word)
        if not word.startswith("-") and not _NOT_OF_AN_INDEX.fullmatch(word):
            return f"{word} would be looked for in the public index, where the name may be somebody else's"
        if found:
            missing = set(found["extras"].split(",")) - extras
            if missing:
                return f"gpugate has no extra {', '.join(sorted(missing))}"
    return "" if arguments[:1] == ["install"] else "pages install with pip, and nothing else"


def _optional_dependencies() -> str:
    text = (ROOT / "pyproject.toml").read_text()
    return text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]


def _of_helm(arguments: Sequence[str]) -> str:
    if not arguments or arguments[0] not in _VERBS["helm"]:
        return "helm has no such command that pages use"
    charts = [word for word in arguments if word.startswith("charts/")]
    missing = [chart for chart in charts if not (ROOT / chart / "Chart.yaml").is_file()]
    if missing:
        return f"there is no chart {', '.join(missing)}"
    given: dict[str, Any] = {}  # Any: what JSON holds
    for flag, value in pairwise(arguments):
        if flag == "--set":
            _set(given, value)
    return values_mistake(given) if given and charts else ""


def _set(given: dict[str, Any], text: str) -> None:  # Any: what JSON holds
    """Lay a value as `--set a.b=c` does; pages use no more of its language."""
    keys, _, value = text.partition("=")
    *parents, last = keys.split(".")
    for key in parents:
        given = given.setdefault(key, {})
    given[last] = yaml.safe_load(value)


_CHECKED: Final[dict[str, Callable[[Sequence[str]], str]]] = {
    "helm": _of_helm,
    "make": _of_make,
    "pip": _of_pip,
}
