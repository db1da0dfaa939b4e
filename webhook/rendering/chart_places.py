"""Finds lines of a rendered chart in its templates."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests.bounded_file import read_regular
from gpugate.webhook.manifests.problems import excerpt, lines_of_template
from gpugate.webhook.rendering.chart_files import template_file
from gpugate.webhook.rendering.chart_marks import MAX_TEMPLATE, line_origins, marked_copy, sources
from gpugate.webhook.rendering.charts import ChartJob
from gpugate.webhook.rendering.render import Text, rendering_of
from gpugate.webhook.report.located import Place

if TYPE_CHECKING:
    import threading

    from gpugate.webhook.rendering.options import RenderOptions
    from gpugate.webhook.report.located import Located


# Places of findings count these as the end of a line too (YAML 1.1, 5.4), and Helm does not.
_BREAK: Final = re.compile("\r(?!\n)|[\u0085\u2028\u2029]")


class ChartPlaces:
    """Where the lines of one rendering are from; makes the rendering with marks when it is made."""

    def __init__(self, text: Text, options: RenderOptions, stop: threading.Event) -> None:
        assert isinstance(text.job, ChartJob)  # noqa: S101 -- whoever makes this has looked
        self._job = text.job
        self._lines = text.text.split("\n")
        self._sources = sources(text.text)
        self._origins = _origins(text, options, stop)
        self._read: dict[str, list[str]] = {}
        self._shown: dict[str, list[str]] = {}

    def of(self, finding: Located) -> Place:
        """Return the place of a finding in a template, or what is known of it."""
        place, index = finding.place, finding.place.line - 1
        variants = (self._job.variant,) if self._job.variant else ()
        origin = self._origins[index] if index < len(self._origins) else None
        lines = self._lines_of(origin[0]) if origin else []
        if origin is None or origin[1] > len(lines):
            file = template_file(self._job.chart, self._sources[index]) if index < len(self._sources) else None
            return replace(
                place, file=file or _whole(self._job), line=1, column=1, end=2, rendered=place.line, variants=variants
            )
        file, line = origin
        written = lines[line - 1]
        if file not in self._shown:
            self._shown[file] = lines_of_template(lines)
        around = excerpt(self._shown[file], line, 1)
        column, end = len(written) - len(written.lstrip()) + 1, len(written.rstrip()) + 1
        if written.rstrip() == self._lines[index].rstrip():
            column, end = place.column, place.end
        return Place(file, line, column, end, around.lines, around.first_line, variants=variants)

    def _lines_of(self, file: str) -> list[str]:
        """Return the lines of a template as they were counted; none when it is no longer what it was."""
        if file not in self._read:
            try:
                text = read_regular(Path(file), MAX_TEMPLATE).decode()
            except (OSError, UnicodeDecodeError):
                text = ""
            # Not where a form feed is too.
            self._read[file] = text.replace("\r\n", "\n").split("\n") if text else []
        return self._read[file]


def _whole(job: ChartJob) -> str:
    """The file that stands for a chart: also for what is from an archive in it."""
    return os.path.join(job.chart, "Chart.yaml") if Path(job.chart).is_dir() else job.chart  # noqa: PTH118 -- `./` stays


def _origins(text: Text, options: RenderOptions, stop: threading.Event) -> list[tuple[str, int] | None]:
    """Return the template and line of each line, None where they are not certain."""
    assert isinstance(text.job, ChartJob)  # noqa: S101 -- as above
    unknown: list[tuple[str, int] | None] = [None] * len(text.text.split("\n"))
    if not Path(text.job.chart).is_dir() or _BREAK.search(text.text):
        return unknown
    with tempfile.TemporaryDirectory(prefix="gpugate-") as folder:
        # Named like the chart's directory, for charts that ask for it.
        target = Path(folder, Path(os.path.realpath(text.job.chart)).name)
        try:
            copy = marked_copy(text.job.chart, str(target))
        except OSError:
            return unknown
        marked = rendering_of(text.job, options, stop, chart=str(target))
    return line_origins(text.text, marked.text, copy) if isinstance(marked, Text) else unknown
