"""Render the charts and kustomizations among the inputs, several at once.

kustomize writes origins if a kustomization has `buildMetadata: [originAnnotations]` (sigs.k8s.io/kustomize/api v0.20).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from gpugate.webhook.manifests.inputs import Chart, Found, Input, Kustomization, Rendering
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.manifests.within import is_git, is_within, tree_of
from gpugate.webhook.rendering.charts import ChartJob, chart_jobs, chart_problem, staged
from gpugate.webhook.rendering.kustomization_files import planned
from gpugate.webhook.rendering.kustomizations import KustomizationJob, kustomization_problem
from gpugate.webhook.rendering.process import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gpugate.webhook.rendering.options import RenderOptions

_DOCUMENT: Final = re.compile(r"^---\n", re.MULTILINE)
_METADATA: Final = re.compile(r"^metadata:\n(?:[ ].*\n)*", re.MULTILINE)
_ORIGIN: Final = re.compile(r"^    config\.kubernetes\.io/origin: \|\n(?P<said>(?:      .*\n)+)", re.MULTILINE)
_EMPTY: Final = re.compile(r"^  annotations:\n(?!    )", re.MULTILINE)
_FILE: Final = re.compile(r"^      (?P<key>path|configuredIn): (?P<file>.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ObjectOrigin:
    """The lines of an object, from 1, and the file it is from; `generated` when that is a kustomization itself."""

    first_line: int
    last_line: int
    file: str
    generated: bool


def without_origins(output: str) -> tuple[str, tuple[ObjectOrigin, ...]]:
    """Return what kustomize built without the annotations, and what they said, object by object."""
    texts: list[str] = []
    origins: list[ObjectOrigin] = []
    line = 1
    for number, document in enumerate(_DOCUMENT.split(output if output.endswith("\n") else f"{output}\n")):
        line += 1 if number else 0
        text, said = _parted(document)
        lines = text.count("\n")
        for found in _FILE.finditer(said):
            file = found["file"].strip("'\"")
            origins.append(ObjectOrigin(line, line + lines - 1, file, found["key"] == "configuredIn"))
            break
        texts.append(text)
        line += lines
    return "---\n".join(texts), tuple(origins)


def _parted(document: str) -> tuple[str, str]:
    """Part a document into what a cluster gets and what the annotation says."""
    metadata = _METADATA.search(document)
    origin = _ORIGIN.search(document, *metadata.span()) if metadata else None
    if metadata is None or origin is None:
        return document, ""
    kept = _EMPTY.sub("", document[metadata.start() : origin.start()] + document[origin.end() : metadata.end()])
    return document[: metadata.start()] + kept + document[metadata.end() :], origin["said"]


_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Text:
    """What a chart or a kustomization became; `origins` are the objects of the latter."""

    job: ChartJob | KustomizationJob
    text: str
    origins: tuple[ObjectOrigin, ...] = ()


@dataclass(frozen=True, slots=True)
class Rendered:
    """What there is to judge, and by the label of each rendering what it was made of."""

    found: list[Found]
    texts: dict[str, Text] = field(default_factory=dict)


def rendered(found: Sequence[Found | Chart | Kustomization], options: RenderOptions) -> Rendered:
    """Put in the place of each chart and kustomization what it becomes, and leave out the files that it uses."""
    plan = planned(found, options)
    parts: list[Found | ChartJob | KustomizationJob] = []
    for part in found:
        if isinstance(part, Chart):
            parts += chart_jobs(part.name, options)
        elif isinstance(part, Kustomization):
            parts += plan.of(part)
        elif not (isinstance(part, Input) and not part.explicit and os.path.realpath(part.name) in plan.used):
            parts.append(part)
    jobs = [part for part in parts if isinstance(part, ChartJob | KustomizationJob)]
    done = iter(at_once(rendering_of, jobs, options))
    made = Rendered([])
    seen: set[Problem] = set()
    for each in parts:
        result: Found | Text = next(done) if isinstance(each, ChartJob | KustomizationJob) else each
        if isinstance(result, Text):
            label = _unique(result.job.label, made.texts)
            made.texts[label] = result
            way = "\0".join((*result.job.values, "", *result.job.set)) if isinstance(result.job, ChartJob) else ""
            what = Rendering(way, result.job.unit)
            made.found.append(Input(label, explicit=True, data=result.text.encode(), rendering=what))
        elif not (isinstance(result, Problem) and result in seen):
            # Every values file of a broken template says the same.
            made.found.append(result)
            seen |= {result} if isinstance(result, Problem) else set()
    return made


def at_once(
    work: Callable[[_Job, RenderOptions, threading.Event], _Result], jobs: Iterable[_Job], options: RenderOptions
) -> list[_Result]:
    """Do some work, as many at once as there may be; in the order of the jobs."""
    stop = threading.Event()
    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            return list(pool.map(lambda job: work(job, options, stop), jobs))
        except BaseException:
            stop.set()
            raise


def rendering_of(
    job: ChartJob | KustomizationJob, options: RenderOptions, stop: threading.Event, chart: str = ""
) -> Text | Problem:
    """Render one; `chart` is the directory of a chart that stands for the job's."""
    with tempfile.TemporaryDirectory(prefix="gpugate-") as home:
        try:
            if isinstance(job, ChartJob):
                rendered_from = chart or staged(job.chart, home)
                readable = _readable(job.chart, rendered_from, *job.values)
                ran = run(job.command("helm", rendered_from), home, options.limits, stop, readable)
                if ran.stopped or ran.code:
                    return chart_problem(job, ran.err, ran.stopped)
                return Text(job, ran.out.decode(errors="replace"))
            helm = shutil.which("helm") if job.inflate else None
            programs = [helm] if helm else []
            ran = run(job.command(home), home, options.limits, stop, _readable(job.file.directory), programs)
        except ValueError:
            where = job.chart if isinstance(job, ChartJob) else job.name
            wrong = "cannot be rendered: a NUL in its values, release or namespace"
            return Problem(where, 0, 0, wrong, "take it out of the flags, or of `charts:` in .gpugate.yaml")
        except OSError as error:
            where = job.chart if isinstance(job, ChartJob) else job.name
            return Problem(where, 0, 0, f"cannot be rendered: {(error.strerror or 'no program').lower()}", "see PATH")
        if ran.stopped or ran.code:
            return kustomization_problem(job, ran.err, ran.stopped)
        text, origins = without_origins(ran.out.decode(errors="replace"))
        overlay = Path(os.path.realpath(home), "overlay")
        found = tuple(
            ObjectOrigin(
                each.first_line, each.last_line, os.path.normpath(overlay / each.file), generated=each.generated
            )
            for each in origins
        )
        return Text(job, text, found)


def _readable(named: str, *further: str) -> list[str] | None:
    """Return what a program may read of the tree that a chart or kustomization is in: all but git's own files.

    Args:
        named: the chart or the kustomization; where nothing says which tree it belongs to, None is returned.
        further: other files and directories that it is given.
    """
    top = tree_of(named)
    if top is None:
        return None
    own = [str(entry) for entry in Path(top).iterdir() if not is_git(entry.name) and is_within(str(entry), top)]
    return [*own, *(os.path.realpath(each) for each in further)]


def _unique(label: str, taken: dict[str, Text]) -> str:
    number = 2
    wanted = label
    while label in taken:
        label, number = f"{wanted} #{number}", number + 1
    return label
