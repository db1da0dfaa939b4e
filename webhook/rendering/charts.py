"""Render a Helm chart: one `helm template` run for each list of values files."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests.bounded_file import MAX_BYTES, read_regular
from gpugate.webhook.manifests.documents import read_bytes
from gpugate.webhook.manifests.inputs import CHART_FILE, Passed
from gpugate.webhook.manifests.problems import NO_EXCERPT, Excerpt, Problem, excerpt, lines_of_broken
from gpugate.webhook.manifests.within import is_git, link_out
from gpugate.webhook.rendering.chart_links import obstacle
from gpugate.webhook.rendering.failures import Failure, shortened
from gpugate.webhook.rendering.options import ChartValues

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.webhook.rendering.options import RenderOptions


def template_file(chart: str, source: str) -> str | None:
    """Return the path of a template that Helm calls `CHART/templates/x.yaml`, `chart` being the directory of CHART.

    None where there is no such file: an archive, or a subchart whose name is not that of its directory.
    """
    parts = source.split("/")[1:]
    if not parts or os.pardir in parts:
        return None
    path = os.path.join(chart, *parts)  # noqa: PTH118 -- the user's `./` stays as it is
    return path if Path(path).is_file() else None


def staged(chart: str, home: str, without: Sequence[str] = ()) -> str:
    """Return the chart; where it is the top of a repository, a directory below `home` with links to all but `.git`.

    Helm reads every file below a chart, and a template may print any of them (`.Files.Get`). Checkouts in CI keep
    credentials in `.git/config`.

    Args:
        chart: its directory or archive.
        home: where links are made.
        without: dependencies that its description does not name there.

    Raises:
        OSError: the links cannot be made.
    """
    if not Path(chart).is_dir() or not (without or any(is_git(entry.name) for entry in Path(chart).iterdir())):
        return chart
    about = _about(chart) if without else None
    stage = Path(os.path.realpath(home), "chart", Path(os.path.realpath(chart)).name)
    stage.mkdir(parents=True)
    for entry in Path(os.path.realpath(chart)).iterdir():
        if isinstance(about, dict) and entry.name == CHART_FILE:
            (stage / entry.name).write_text(json.dumps(_less(about, without)), encoding="utf-8")
        elif not is_git(entry.name):
            (stage / entry.name).symlink_to(entry)
    return str(stage)


def _less(about: dict[str, object], without: Sequence[str]) -> dict[str, object]:
    """Return the description of a chart without some of its dependencies."""
    listed = about.get("dependencies")
    remaining = (
        [
            dependency
            for dependency in listed
            if not (isinstance(dependency, dict) and dependency.get("name") in without)
        ]
        if isinstance(listed, list)
        else []
    )
    return {**about, "dependencies": remaining}


# Helm 3.22 and 4.3; the names are parted by commas.
_MISSING: Final = re.compile(r"found in Chart\.yaml, but missing in charts/ directory: (?P<names>.+)")
_MISSING_REMEDY: Final = "run `helm dependency build {}` first: gpugate downloads nothing"
_DEFAULT_NAMESPACE: Final = "default"


def another_way(job: ChartJob, stderr: str) -> ChartJob | None:
    """Return how a chart may render that did not: without dependencies that are not there, or in a namespace of its own.

    Args:
        job: how it did not.
        stderr: what Helm wrote.
    """
    missing = _MISSING.search(stderr)
    if missing and not job.without and Path(job.chart).is_dir():
        return replace(job, without=tuple(name.strip() for name in missing["names"].split(",")))
    # A chart may refuse the namespace that was chosen for it because nothing names one.
    if (
        job.namespace == _DEFAULT_NAMESPACE
        and job.may_move
        and "execution error at" in stderr
        and "namespace" in stderr
    ):
        return replace(job, namespace=job.release, may_move=False)
    # Values of Terraform hold expressions, which a template may not take for what it expects.
    if job.texts:
        return replace(job, texts=(), source="")
    return None


def left_out(job: ChartJob) -> Problem | None:
    """Say which dependencies a chart was rendered without; None where it has all."""
    if not job.without:
        return None
    message = f"rendered without its dependencies {', '.join(job.without)}, which are not in charts/"
    return Problem(_chart_file(job.chart), 0, 0, message, _MISSING_REMEDY.format(job.chart), note=True)


# `at (c/templates/x.yaml:19:3)`, `template: c/templates/_x.tpl:2:10`: Helm 3.22 and 4.3; the last is the innermost.
# It is looked for at the beginning of a word alone: a chart may fail with one of any length.
_PLACE: Final = re.compile(r"(?<![^\s()\"])(?P<file>[^\s():\"]+):(?P<line>\d+)(?::(?P<column>\d+))?")
# The YAML that a template makes cannot be read: the line is one of the output.
_BROKEN: Final = re.compile(r"YAML parse error on (?P<file>[^\s:]+): (?:error converting YAML to JSON: )?(?:yaml: )?")
_VALUES: Final = re.compile(
    r"(?:cannot load values\.yaml|failed to parse (?P<file>\S+)):.*?line (?P<line>\d+)", re.DOTALL
)
_NOISE: Final = re.compile(r"^(?:level=\w+ .*|.*found symbolic link in path.*|Use --debug flag .*|\s*)$", re.MULTILINE)
_REMEDIES: Final = (
    ("missing in charts/ directory", _MISSING_REMEDY.format("{chart}")),
    ("execution error at", "set the required values: --values FILE, or `charts:` in .gpugate.yaml"),
    ("specifications of the schema", "set values that match its schema: --values FILE, or `charts:` in .gpugate.yaml"),
    ("incompatible with Kubernetes", "set the target in the policy file, or --kube-version"),
)
_REMEDY: Final = "correct it; `helm template {chart}` reports the same"


def chart_failure(job: ChartJob, stderr: str, stopped: str) -> Failure:
    """Return why a chart was not rendered; renderings with other values may have the same cause."""
    problem = chart_problem(job, stderr, stopped)
    message = problem.message.replace(_with(job), "", 1)
    cause = f"{problem.source}\0{problem.line}\0{problem.column}\0{message}"
    return Failure(f"{job.chart}{_with(job)}", problem, cause, chart=job.chart)


def _with(job: ChartJob) -> str:
    return f" with {job.variant}" if job.variant else ""


def chart_problem(job: ChartJob, stderr: str, stopped: str) -> Problem:
    """Return what went wrong with a chart, at the template or the values file that Helm names."""
    chart_file = os.path.join(job.chart, "Chart.yaml") if Path(job.chart).is_dir() else job.chart  # noqa: PTH118 -- `./` stays
    which = _with(job)
    if stopped:
        remedy = "render it by hand to see why: `helm template`, or raise --render-timeout"
        return Problem(chart_file, 0, 0, f"helm {stopped}{which}", remedy)
    text = _text(stderr)
    remedy = next((remedy for sign, remedy in _REMEDIES if sign in text), _REMEDY).format(chart=job.chart)
    if broken := _BROKEN.search(text):
        file = template_file(job.chart, broken["file"]) or chart_file
        message = f"the rendered output{which} is not valid YAML: {shortened(text[broken.end() :])}"
        return Problem(file, 0, 0, message, remedy)
    message = f"cannot be rendered{which}: {shortened(text)}"
    if values := _VALUES.search(text):
        # A template may fail with any text, and only the files of the job are shown.
        own = os.path.join(job.chart, "values.yaml")  # noqa: PTH118 -- as above
        file = values["file"] if values["file"] in job.values else own
        line = int(values["line"])
        return Problem(file, line, 1, message, "correct the YAML of the values", excerpt=_around(file, line), end=2)
    for location in reversed(list(_PLACE.finditer(text))):
        file = (template_file(job.chart, location["file"]) or "") if "/templates/" in location["file"] else ""
        if file:
            line, column = int(location["line"]), int(location["column"] or 0) + 1  # Go counts the column from 0
            return Problem(file, line, column, message, remedy, excerpt=_around(file, line), end=column + 1)
    return Problem(chart_file, 0, 0, message, remedy)


def _text(stderr: str) -> str:
    lines = [line.strip() for line in _NOISE.sub("", stderr).splitlines()]
    return "; ".join(line for line in lines if line).removeprefix("Error: ") or "helm failed without an error message"


def _around(file: str, line: int) -> Excerpt:
    try:
        text = read_regular(Path(file), MAX_BYTES).decode(errors="replace")
    except OSError:
        return NO_EXCERPT
    lines = lines_of_broken(text)
    return excerpt(lines, line, 1) if line <= len(lines) else NO_EXCERPT


_ABSENT: Final = "install Helm 3 or 4, or leave charts out with --exclude"
_NO_PROGRAM: Final = "helm is not on PATH"
_LIBRARY: Final = "a library chart: it is evaluated in the charts that use it"
# What Helm 4.3 says a release may be called (helm.sh/helm/v4/pkg/chart/common.ValidateReleaseName, at most 53 characters).
_NO_RELEASE: Final = re.compile(r"[^a-z0-9]+")
_LONGEST_RELEASE: Final = 53
_MAX_CHART_FILE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ChartJob:
    """A chart to render in one way.

    `chart` is its directory or archive as the user wrote it, `title` the name in its Chart.yaml. `without` are dependencies
    that it is rendered without, and `may_move` says that the user chose no namespace. `texts` are further values as YAML, and
    `source` is what gives them.
    """

    chart: str
    title: str
    release: str
    namespace: str
    kube_version: str
    values: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    may_move: bool = False
    texts: tuple[str, ...] = ()
    source: str = ""

    @property
    def variant(self) -> str:
        """The values files, for people; empty where the chart's own are taken.

        Of what is set it has the names alone: a password given so must not stand in a report.
        """
        names = [*self.values, *(f"--set {value.partition('=')[0]}=..." for value in self.set)]
        return ", ".join([*names, *filter(None, [self.source])])

    @property
    def label(self) -> str:
        """What is rendered, for people."""
        return f"{self.chart} (rendered{f' with {self.variant}' if self.variant else ''})"

    @property
    def unit(self) -> str:
        """What takes the place of each other: one release in one namespace."""
        return f"{os.path.realpath(self.chart)}\0{self.release}\0{self.namespace}"

    def command(self, helm: str, chart: str, home: str = "") -> list[str]:
        """Return the command that renders a directory with this chart; nothing is fetched, no cluster is asked.

        Raises:
            OSError: the values that are texts cannot be written below `home`.
        """
        flags = [f"--namespace={self.namespace}", f"--kube-version={self.kube_version}"]
        flags += [f"--values={_as_one(value)}" for value in self.values]
        for number, text in enumerate(self.texts):
            file = Path(os.path.realpath(home), f"values-{number}.yaml")
            file.write_text(text, encoding="utf-8")
            flags.append(f"--values={_as_one(str(file))}")
        flags += [f"--set={value}" for value in self.set]
        flags += [f"--api-versions={value}" for value in self.api_versions]
        # Helm takes the space around the name away, and would render another directory.
        named = chart if chart == chart.strip() else os.path.join(os.path.abspath(chart), "")  # noqa: PTH100, PTH118
        return [helm, "template", *flags, "--", self.release, named]


def chart_jobs(chart: str, options: RenderOptions) -> Iterator[ChartJob | Failure | Passed]:
    """Yield the ways in which a chart is to be rendered, or why it cannot be."""
    real = os.path.realpath(chart)
    ways = [entry for entry in options.charts if os.path.realpath(entry.path) == real] or [ChartValues(chart)]
    if options.changed is not None and not _is_changed(real, ways, options.changed):
        return
    # Before anything is read: also what is wrong in a file is shown with its text.
    in_the_way = obstacle(chart)
    if in_the_way:
        yield Failure(chart, in_the_way, chart=chart)
        return
    about = _about(chart)
    if not isinstance(about, dict):
        yield Failure(chart, about, chart=chart)
        return
    if about.get("type") == "library":
        yield Passed(chart, _LIBRARY)
        return
    if shutil.which("helm") is None:
        problem = Problem(_chart_file(chart), 0, 0, _NO_PROGRAM, _ABSENT, note=True)
        yield Failure(chart, problem, _NO_PROGRAM, chart=chart)
        return
    title = about.get("name")
    for way in ways:
        for values in way.values or ((),):
            # What the project file names was held to the rule before; of what flags name, links are of the tree too.
            linked = [file for file in values if link_out(file)]
            if linked:
                wrong = Problem(linked[0], 0, 0, "a link out of the repository", "name what it leads to")
                yield Failure(chart, wrong, chart=chart)
                continue
            lost = [file for file in values if not Path(file).is_file()]
            if lost:
                remedy = f"{chart} is to be rendered with it: check the spelling, and the directory you are in"
                yield Failure(chart, Problem(lost[0], 0, 0, "no such values file", remedy), chart=chart)
                continue
            yield ChartJob(
                chart,
                title if isinstance(title, str) else "",
                way.release or release_name(chart),
                way.namespace or options.namespace,
                options.kube_version,
                values,
                way.set,
                way.api_versions,
                may_move=not way.namespace,
                texts=way.texts,
                source=way.source,
            )


def release_name(chart: str) -> str:
    """Return the default release name of a chart: the name of its directory."""
    name = _NO_RELEASE.sub("-", Path(os.path.realpath(chart)).name.removesuffix(".tgz").lower())
    return name.strip("-")[:_LONGEST_RELEASE].strip("-") or "release"


def _as_one(file: str) -> str:
    """Quote a name for a flag that takes several, separated by commas, as a line of CSV (spf13/pflag StringSlice)."""
    # What looks like a URL would be fetched, and `-` would be standard input, also where a file has that name.
    file = os.path.join(os.curdir, file) if "://" in file or file == "-" else file  # noqa: PTH118 -- Path drops `./`
    quoted = file.replace('"', '""')
    return f'"{quoted}"' if quoted != file or "," in file else file


def _chart_file(chart: str) -> str:
    return os.path.join(chart, CHART_FILE) if Path(chart).is_dir() else chart  # noqa: PTH118 -- `./` stays


def _about(chart: str) -> dict[str, object] | Problem:
    """Return what is in Chart.yaml; nothing of an archive, which only Helm opens."""
    file = Path(chart, CHART_FILE)
    if not Path(chart).is_dir():
        if Path(chart).is_file():
            return {}
        return Problem(chart, 0, 0, "no such chart", "name the directory of a chart, or its .tgz archive")
    name = _chart_file(chart)
    try:
        data = read_regular(file, _MAX_CHART_FILE)
    except OSError as error:
        return Problem(name, 0, 0, (error.strerror or "cannot be read").lower(), "a chart has it in its directory")
    for part in read_bytes(name, data):
        if isinstance(part, Problem):
            if not part.warning:
                return part
        elif isinstance(part.value, dict):
            return dict(part.value)
    return Problem(name, 0, 0, "is not a valid Chart.yaml", "write apiVersion, name and version")


def _is_changed(real: str, values_lists: list[ChartValues], changed: frozenset[str]) -> bool:
    files = {os.path.realpath(file) for way in values_lists for values in way.values for file in values}
    return bool(files & changed) or any(path == real or path.startswith(real + os.sep) for path in changed)


_PLAIN: Final = (".yaml", ".yml", ".json")
_ACTION: Final = b"{{"
_MOST_FILES: Final = 10_000


def plain_templates(chart: str) -> Iterator[str]:
    """Yield the templates of a chart that hold no action, and so render to what they are; links are not followed."""
    if link_out(chart):
        return
    count = 0
    for folder, folders, names in os.walk(chart):
        folders[:] = sorted(name for name in folders if not is_git(name))
        inside = Path(os.path.relpath(folder, chart)).parts
        count += len(names)
        if count > _MOST_FILES:
            return
        for name in sorted(names) if "templates" in inside else ():
            path = os.path.join(folder, name)  # noqa: PTH118 -- the user's `./` stays
            if not name.endswith(_PLAIN) or name.startswith("_") or os.path.islink(path):  # noqa: PTH114 -- of a text
                continue
            try:
                data = read_regular(Path(path), MAX_BYTES)
            except OSError:
                continue
            if _ACTION not in data:
                yield path
