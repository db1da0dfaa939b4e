"""Why charts and kustomizations are not rendered: one problem for each cause, whatever number of them it concerns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.webhook.manifests.problems import Problem

_LONGEST: Final = 600  # characters of what a program said
_NAMED: Final = 3  # of what a cause concerns; the summary and JSON have all of them
_BEGINNING: Final = 200  # of these


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one chart or kustomization is not rendered, or only in part.

    Attributes:
        source: the chart or kustomization as the user wrote it, with its values.
        problem: the cause, in the file that holds it.
        cause: equal for failures of the same cause; empty where the problem's place and message say which it is.
        directory: real path of a kustomization that was not built; empty for a chart.
        chart: the chart that was not rendered at all; empty where a part of it was.
    """

    source: str
    problem: Problem
    cause: str = ""
    directory: str = ""
    chart: str = ""

    @property
    def key(self) -> str:
        """What failures of the same cause have in common."""
        problem = self.problem
        return self.cause or f"{problem.source}\0{problem.line}\0{problem.column}\0{problem.message}"


def by_cause(failures: Iterable[Failure]) -> dict[str, Problem]:
    """Return for each cause its problem, which names what is not rendered because of it."""
    groups: dict[str, list[Failure]] = {}
    for failure in failures:
        groups.setdefault(failure.key, []).append(failure)
    return {key: _problem_of(group) for key, group in groups.items()}


def _problem_of(group: list[Failure]) -> Problem:
    problem = group[0].problem
    names = list(dict.fromkeys(failure.source for failure in group))
    # A program that is missing is about no chart of its own.
    if len(names) == 1 and not (problem.note and group[0].cause):
        return problem
    further = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    listed = ", ".join(names[:_NAMED]) + further
    return replace(problem, message=f"{problem.message} (not rendered: {listed})")


def shortened(text: str) -> str:
    """Return what a program said, without its middle where it is long.

    The cause is at the end where a program says first what it was doing, and at the beginning where a chart explains.
    """
    return text if len(text) <= _LONGEST else f"{text[:_BEGINNING]} ... {text[_BEGINNING - _LONGEST :]}"
