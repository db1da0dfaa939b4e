"""Reads a Dockerfile: its stages, and the instructions of each, with arguments filled in.

Only what ours uses is understood (https://docs.docker.com/reference/dockerfile/); anything else is an error, so that no step
is left out unseen.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_KNOWN = frozenset({"COPY", "RUN", "WORKDIR", "ENV", "USER", "LABEL", "EXPOSE", "ENTRYPOINT", "CMD"})
_PAIRS = ("ENV", "LABEL")


class DockerfileError(Exception):
    """An instruction that is not understood; names its line."""


@dataclass(frozen=True)
class Instruction:
    """`words` are the arguments: of COPY and of the list form the words, of RUN as a shell command the one command line."""

    name: str
    words: tuple[str, ...]
    shell: bool = False


@dataclass
class Stage:
    """From `FROM` to the next one; `build_arguments` are those it declares, as RUN sees them."""

    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)
    build_arguments: dict[str, str] = field(default_factory=dict)

    def each(self, name: str) -> list[Instruction]:
        return [each for each in self.instructions if each.name == name]

    def last(self, name: str) -> tuple[str, ...]:
        """Return the words of the instruction of which the last one counts."""
        return self.each(name)[-1].words

    def pairs(self, name: str) -> dict[str, str]:
        """Return what all ENV or all LABEL instructions set."""
        return dict(word.split("=", 1) for each in self.each(name) for word in each.words)


def read(file: Path, build_arguments: Mapping[str, str] | None = None) -> list[Stage]:
    """Return the stages of a Dockerfile.

    Raises:
        DockerfileError: it holds what is not understood.
    """
    given = build_arguments or {}
    everywhere: dict[str, str] = {}
    stages: list[Stage] = []
    for line in _lines(file.read_text(encoding="utf-8")):
        name, _, rest = line.partition(" ")
        rest = rest.strip()
        if name == "ARG":
            argument, has_default, default = rest.partition("=")
            known = stages[-1].build_arguments if stages else everywhere
            value = given.get(argument, default if has_default else everywhere.get(argument))
            if value is not None:
                known[argument] = value
        elif name == "FROM":
            base, _, alias = _filled(rest, everywhere).partition(" AS ")
            stages.append(Stage(base, alias or str(len(stages))))
        elif name in _KNOWN and stages:
            stages[-1].instructions.append(_instruction(name, rest, stages[-1].build_arguments))
        else:
            raise DockerfileError(f"{file}: {line}: not understood")
    return stages


def _lines(text: str) -> Iterator[str]:
    joined = re.sub(r"\\\n\s*", "", text)
    return (line for line in joined.splitlines() if line.strip() and not line.startswith("#"))


def _instruction(name: str, rest: str, variables: Mapping[str, str]) -> Instruction:
    if rest.startswith("["):
        return Instruction(name, tuple(json.loads(rest)))
    filled = _filled(rest, variables)
    if name == "RUN":
        return Instruction(name, (filled,), shell=True)  # noqa: S604 -- says of what form it is
    words = tuple(shlex.split(filled))
    if name in _PAIRS and not all("=" in word for word in words):
        raise DockerfileError(f"{name} {rest}: not understood: write NAME=value")
    return Instruction(name, words)


def _filled(text: str, variables: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: variables.get(found[1], ""), text)
