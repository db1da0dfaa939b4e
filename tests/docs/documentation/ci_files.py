"""Holds files of CI systems against what they call: the commands in them, and our hooks of pre-commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from documentation.blocks import ROOT
from documentation.command_lines import mistake
from documentation.console import programs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from documentation.blocks import Block


def steps(_: Block, found: list[Any]) -> Iterator[str]:
    """Steps of a job of GitHub."""
    yield from _steps_of(found[0])


def workflow(_: Block, found: list[Any]) -> Iterator[str]:
    """A workflow of GitHub."""
    for job in found[0]["jobs"].values():
        yield from _steps_of(job.get("steps", ()))


def _steps_of(steps: Any) -> Iterator[str]:  # Any: what YAML holds
    for step in steps:
        yield from _command_mistakes(step.get("run", ""))


def _command_mistakes(text: str) -> Iterator[str]:
    """Yield what is wrong with command lines."""
    for line in text.replace("\\\n", " ").splitlines():
        for words in programs(line):
            wrong = mistake(words)
            if wrong:
                yield f"{' '.join(words)}: {wrong}"


def pipeline(_: Block, found: list[Any]) -> Iterator[str]:
    """A pipeline of GitLab: jobs with `script`."""
    for job in found[0].values():
        for line in job.get("script", ()) if isinstance(job, dict) else ():
            yield from _command_mistakes(line)


def hooks(_: Block, found: list[Any]) -> Iterator[str]:
    """A configuration of pre-commit: the hooks of ours that it names exist."""
    ours = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    for repository in found[0]["repos"]:
        if str(repository["repo"]).endswith("gpugate"):
            missing = {hook["id"] for hook in repository["hooks"]} - ours
            yield from (f"gpugate has no hook {each}" for each in sorted(missing))
