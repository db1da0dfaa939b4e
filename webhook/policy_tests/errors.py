"""Why a test cannot be run; that it fails is a result and no error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.report.located import Place

if TYPE_CHECKING:
    from gpugate.webhook.manifests.problems import Problem


class CaseFileError(GpugateError):
    """A case file, or something that it names, is not what it should be; the text begins with file:line:column.

    `place` shows the line; `message` is the text without it.
    """

    def __init__(self, place: Place, message: str) -> None:
        where = f"{place.file}:{place.line}:{place.column}" if place.line else place.file
        super().__init__(f"{where}: {message}")
        self.place = place
        self.message = message


def unreadable(problem: Problem) -> CaseFileError:
    """Say that a file, or a document of it, cannot be read."""
    around = problem.excerpt
    place = Place(problem.source, problem.line, problem.column, problem.end, around.lines, around.first_line)
    return CaseFileError(place, f"{problem.message}: {problem.remedy}")
