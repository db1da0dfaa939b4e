"""What Helm says when it cannot render a chart, as a problem with a place."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests.bounded_file import MAX_BYTES, read_regular
from gpugate.webhook.manifests.problems import NO_EXCERPT, Excerpt, Problem, excerpt, lines_of_broken
from gpugate.webhook.rendering.chart_files import template_file

if TYPE_CHECKING:
    from gpugate.webhook.rendering.charts import ChartJob

# `at (c/templates/x.yaml:19:3)`, `template: c/templates/_x.tpl:2:10`: Helm 3.22 and 4.3; the last is the innermost.
# It is looked for at the beginning of a word alone: a chart may fail with one of any length.
_PLACE: Final = re.compile(r"(?<![^\s()\"])(?P<file>[^\s():\"]+):(?P<line>\d+)(?::(?P<column>\d+))?")
# The YAML that a template makes cannot be read: the line is one of the output.
_BROKEN: Final = re.compile(r"YAML parse error on (?P<file>[^\s:]+): (?:error converting YAML to JSON: )?(?:yaml: )?")
_VALUES: Final = re.compile(
    r"(?:cannot load values\.yaml|failed to parse (?P<file>\S+)):.*?line (?P<line>\d+)", re.DOTALL
)
_NOISE: Final = re.compile(r"^(?:level=\w+ .*|.*found symbolic link in path.*|Use --debug flag .*|\s*)$", re.MULTILINE)
_LONGEST: Final = 600
_REMEDIES: Final = (
    ("missing in charts/ directory", "run `helm dependency build {chart}` first: gpugate downloads nothing"),
    ("execution error at", "give it the values that it asks for: --values FILE, or `charts:` in .gpugate.yaml"),
    ("specifications of the schema", "give it values that fit: --values FILE, or `charts:` in .gpugate.yaml"),
    ("incompatible with Kubernetes", "set the target in the policy file, or --kube-version"),
)
_REMEDY: Final = "mend it; `helm template {chart}` says the same"


def chart_problem(job: ChartJob, said: str, stopped: str) -> Problem:
    """Return what went wrong with a chart, at the template or the values file that Helm names."""
    chart_file = os.path.join(job.chart, "Chart.yaml") if Path(job.chart).is_dir() else job.chart  # noqa: PTH118 -- `./` stays
    which = f" with {job.variant}" if job.variant else ""
    if stopped:
        remedy = "render it by hand to see why: `helm template`, or raise --render-timeout"
        return Problem(chart_file, 0, 0, f"helm {stopped}{which}", remedy)
    text = _text(said)
    remedy = next((each for sign, each in _REMEDIES if sign in text), _REMEDY).format(chart=job.chart)
    if broken := _BROKEN.search(text):
        file = template_file(job.chart, broken["file"]) or chart_file
        message = f"what it renders to{which} is no YAML: {text[broken.end() :]}"
        return Problem(file, 0, 0, message[:_LONGEST], remedy)
    message = f"cannot be rendered{which}: {text}"[:_LONGEST]
    if values := _VALUES.search(text):
        # A template may fail with any text, and only the files of the job are shown.
        own = os.path.join(job.chart, "values.yaml")  # noqa: PTH118 -- as above
        file = values["file"] if values["file"] in job.values else own
        line = int(values["line"])
        return Problem(file, line, 1, message, "mend the YAML of the values", excerpt=_around(file, line), end=2)
    for place in reversed(list(_PLACE.finditer(text))):
        file = (template_file(job.chart, place["file"]) or "") if "/templates/" in place["file"] else ""
        if file:
            line, column = int(place["line"]), int(place["column"] or 0) + 1  # Go counts the column from 0
            return Problem(file, line, column, message, remedy, excerpt=_around(file, line), end=column + 1)
    return Problem(chart_file, 0, 0, message, remedy)


def _text(said: str) -> str:
    lines = [line.strip() for line in _NOISE.sub("", said).splitlines()]
    return "; ".join(line for line in lines if line).removeprefix("Error: ") or "helm failed and said nothing"


def _around(file: str, line: int) -> Excerpt:
    try:
        text = read_regular(Path(file), MAX_BYTES).decode(errors="replace")
    except OSError:
        return NO_EXCERPT
    lines = lines_of_broken(text)
    return excerpt(lines, line, 1) if line <= len(lines) else NO_EXCERPT
