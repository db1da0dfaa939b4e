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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from gpugate.webhook.manifests.inputs import Chart, Found, Input, Kustomization, Passed, Rendering
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.manifests.within import is_git, is_within, tree_of
from gpugate.webhook.rendering.charts import (
    ChartJob,
    another_way,
    chart_failure,
    chart_jobs,
    left_out,
    plain_templates,
    staged,
)
from gpugate.webhook.rendering.failures import Failure, by_cause
from gpugate.webhook.rendering.kustomization_files import KustomizationFile, planned
from gpugate.webhook.rendering.kustomizations import KustomizationJob, kustomization_problem
from gpugate.webhook.rendering.process import run
from gpugate.webhook.report.located import NotRendered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gpugate.webhook.rendering.kustomization_files import Plan
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
        text, annotation = _parted(document)
        lines = text.count("\n")
        for match in _FILE.finditer(annotation):
            file = match["file"].strip("'\"")
            origins.append(ObjectOrigin(line, line + lines - 1, file, match["key"] == "configuredIn"))
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
    metadata_text = _EMPTY.sub(
        "", document[metadata.start() : origin.start()] + document[origin.end() : metadata.end()]
    )
    return document[: metadata.start()] + metadata_text + document[metadata.end() :], origin["said"]


_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Text:
    """What a chart or a kustomization became; `origins` are the objects of the latter, `partly` why a part of it is missing."""

    job: ChartJob | KustomizationJob
    text: str
    origins: tuple[ObjectOrigin, ...] = ()
    partly: Failure | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    """What there is to evaluate, by the label of each rendering what it was made of, and what was not rendered."""

    parts: list[Found]
    texts: dict[str, Text] = field(default_factory=dict)
    not_rendered: tuple[NotRendered, ...] = ()


def rendered(files: Sequence[Found | Chart | Kustomization], options: RenderOptions) -> Rendered:
    """Put in the place of each chart and kustomization what it becomes, and leave out the files that it uses.

    Of what is not rendered, files that hold objects are read as they are, unless something that is rendered has them too.
    """
    plan = planned(files, options)
    parts: list[Found | Failure | ChartJob | KustomizationJob] = []
    for part in files:
        if isinstance(part, Chart):
            parts += chart_jobs(part.name, options)
        elif isinstance(part, Kustomization):
            parts += plan.of(part)
        else:
            parts.append(part)
    jobs = [part for part in parts if isinstance(part, ChartJob | KustomizationJob)]
    done = iter(at_once(rendering_of, jobs, options))
    results = [next(done) if isinstance(part, ChartJob | KustomizationJob) else part for part in parts]
    return _collected(results, plan)


def _collected(results: Sequence[Found | Failure | Text], plan: Plan) -> Rendered:
    parts: list[Found] = []
    texts: dict[str, Text] = {}
    as_they_are = _as_they_are(results, plan)
    causes = by_cause(_failures(results))
    unread = {file.unrendered: 0 for file in as_they_are.values()}
    unread = {**{failed.source: 0 for failed in results if isinstance(failed, Failure)}, **unread}
    for result in results:
        failure = result.partly if isinstance(result, Text) else result
        if isinstance(result, Text):
            label = _unique(result.job.label, texts)
            texts[label] = result
            way = (
                "\0".join((*result.job.values, "", *result.job.set, "", *result.job.texts))
                if isinstance(result.job, ChartJob)
                else ""
            )
            rendering = Rendering(way, result.job.unit)
            parts.append(Input(label, explicit=True, data=result.text.encode(), rendering=rendering))
        elif isinstance(result, Input) and not result.explicit and (real := os.path.realpath(result.name)) in plan.used:
            as_it_is = as_they_are.pop(real, None)
            if as_it_is:
                parts.append(replace(result, unrendered=as_it_is.unrendered, altered=as_it_is.altered))
                unread[as_it_is.unrendered] += 1
        elif not isinstance(result, Failure):
            parts.append(result)
        if isinstance(failure, Failure) and (problem := causes.pop(failure.key, None)):
            parts.append(replace(problem, of_rendering=isinstance(result, Failure)))
    # What no path stands for, such as a base outside of it.
    for file in as_they_are.values():
        parts.append(file)
        unread[file.unrendered] += 1
    return Rendered(parts, texts, tuple(NotRendered(name, count) for name, count in unread.items()))


def _failures(results: Iterable[Found | Failure | Text]) -> Iterator[Failure]:
    for result in results:
        failure = result.partly if isinstance(result, Text) else result
        if isinstance(failure, Failure):
            yield failure


def _as_they_are(results: Sequence[Found | Failure | Text], plan: Plan) -> dict[str, Input]:
    """Return the files that are read as they are, by their real paths."""
    charts = {result.job.chart for result in results if isinstance(result, Text) and isinstance(result.job, ChartJob)}
    built = {
        file
        for result in results
        if isinstance(result, Text) and isinstance(result.job, KustomizationJob)
        for part in result.job.parts
        for file in part.resources
    }
    inputs: dict[str, Input] = {}
    failed = [(failure.source, failure.directory) for failure in _failures(results) if failure.directory]
    failed += [(passed.name, os.path.realpath(passed.name)) for passed in results if isinstance(passed, Passed)]
    for name, directory in failed:
        parts, _ = plan.closure(directory) if isinstance(plan.read.get(directory), KustomizationFile) else ([], [])
        altered = any(part.alters for part in parts)
        for real in (
            resource
            for part in parts
            for resource in part.resources
            if resource not in built and resource not in inputs
        ):
            label = real if Path(name).is_absolute() else os.path.relpath(real)
            inputs[real] = Input(label, explicit=False, unrendered=name, altered=altered)
    unread = {
        failure.chart: failure.source
        for failure in reversed(list(_failures(results)))
        if failure.chart not in {"", *charts}
    }
    for chart, name in unread.items():
        for path in plain_templates(chart):
            inputs.setdefault(os.path.realpath(path), Input(path, explicit=False, unrendered=name))
    return inputs


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
) -> Text | Failure:
    """Render one; `chart` is the directory of a chart that stands for the job's."""
    subject, directory = (job.chart, "") if isinstance(job, ChartJob) else (job.name, job.file.directory)
    with tempfile.TemporaryDirectory(prefix="gpugate-") as home:
        try:
            if isinstance(job, ChartJob):
                return _chart(job, options, stop, chart)
            helm = shutil.which("helm") if job.inflate else None
            programs = [helm] if helm else []
            ran = run(job.command(home), home, options.limits, stop, _readable(job.file.directory), programs)
        except ValueError:
            wrong = "cannot be rendered: a NUL in its values, release or namespace"
            remedy = "take it out of the flags, or of `charts:` in .gpugate.yaml"
            return Failure(subject, Problem(subject, 0, 0, wrong, remedy), directory=directory)
        except OSError as error:
            wrong = f"cannot be rendered: {(error.strerror or 'no program').lower()}"
            return Failure(subject, Problem(subject, 0, 0, wrong, "see PATH"), directory=directory)
        if ran.stopped or ran.code:
            return Failure(subject, kustomization_problem(job, ran.err, ran.stopped), directory=directory)
        text, origins = without_origins(ran.out.decode(errors="replace"))
        overlay = Path(os.path.realpath(home), "overlay")
        objects = tuple(
            ObjectOrigin(
                origin.first_line, origin.last_line, os.path.normpath(overlay / origin.file), generated=origin.generated
            )
            for origin in origins
        )
        return Text(job, text, objects)


def _chart(job: ChartJob, options: RenderOptions, stop: threading.Event, chart: str) -> Text | Failure:
    """Render a chart as it was asked for, else in another way in which it may render, else say why it does not.

    Raises:
        OSError: the program cannot be started.
        ValueError: an argument holds a NUL.
    """
    first: Failure | None = None
    way: ChartJob | None = job
    while way is not None:
        with tempfile.TemporaryDirectory(prefix="gpugate-") as home:
            rendered_from = staged(chart or way.chart, home, way.without)
            readable = _readable(way.chart, chart or way.chart, rendered_from, *way.values)
            ran = run(way.command("helm", rendered_from, home), home, options.limits, stop, readable)
        if not (ran.stopped or ran.code):
            wrong = left_out(way)
            return Text(way, ran.out.decode(errors="replace"), partly=Failure(way.chart, wrong) if wrong else None)
        # What refuses another namespace too is wrong for another reason.
        if first is None or way.namespace != job.namespace:
            first = chart_failure(way, ran.err, ran.stopped)
        way = None if ran.stopped else another_way(way, ran.err)
    assert first is not None  # noqa: S101 -- for mypy: one way was tried
    return first


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
    return [*own, *(os.path.realpath(path) for path in further)]


def _unique(label: str, taken: dict[str, Text]) -> str:
    number = 2
    wanted = label
    while label in taken:
        label, number = f"{wanted} #{number}", number + 1
    return label
