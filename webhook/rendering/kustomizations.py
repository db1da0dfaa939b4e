"""Makes of a kustomization what it becomes, with the file that each object is from."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.rendering.chart_links import obstacle
from gpugate.webhook.rendering.failures import Failure, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.webhook.rendering.kustomization_files import KustomizationFile

_ABSENT: Final = "install kustomize or kubectl: without them, patches are left out"
_NO_PROGRAM: Final = "neither kustomize nor kubectl is on PATH"
_INFLATE: Final = "use --enable-helm if you trust it, or check the chart itself"
# Names in a message: quoted, or in the words of generators and patches.
_QUOTED: Final = re.compile(r"""['"(\[]([^'"\s()\[\]]{2,})['")\]]""")
# kubectl logs its error where it has no terminal, one of several lines between `<` and `>` (klog v2.130).
_LOGGED: Final = re.compile(r'^E\d{4} [^\n]*? err=(?=[<"])', re.MULTILINE)
# kustomize says first by which way it came to a directory (sigs.k8s.io/kustomize/api v0.21.1, KustTarget.accumulateResources).
_AT: Final = re.compile(r"(?:recursed accumulation of|couldn't make target for) path '(?P<directory>[^']+)': ")
_RESOURCE: Final = re.compile(r"(?:accumulating|merging) resources from '(?P<file>[^']+)': (?P<cause>.*)", re.DOTALL)
_AS_DIRECTORY: Final = re.compile(r"': must build at directory: .*\Z", re.DOTALL)
_STEPS: Final = ("accumulating resources: ", "accumulation err='")
_REGISTERED: Final = "may not add resource"


@dataclass(frozen=True, slots=True)
class KustomizationJob:
    """A kustomization to build: its directory as the user wrote it, what is in its file, and all that it builds on."""

    name: str
    file: KustomizationFile
    inflate: bool = False
    parts: tuple[KustomizationFile, ...] = ()

    @property
    def label(self) -> str:
        """What is rendered, for people."""
        return f"{self.name} (rendered)"

    @property
    def unit(self) -> str:
        """What takes the place of each other."""
        return self.file.directory

    def command(self, home: str) -> list[str]:
        """Write the overlay that has kustomize say where each object is from, and return the command that builds it."""
        overlay = Path(home, "overlay")
        overlay.mkdir(exist_ok=True)
        wanted = {
            "resources": [os.path.relpath(self.file.directory, os.path.realpath(overlay))],
            "buildMetadata": ["originAnnotations"],
        }
        if self.file.sort_options is not None:
            wanted["sortOptions"] = self.file.sort_options
        (overlay / "kustomization.yaml").write_text(json.dumps(wanted), encoding="utf-8")
        program = [kustomize, "build"] if (kustomize := shutil.which("kustomize")) else ["kubectl", "kustomize"]
        helm = shutil.which("helm") if self.inflate else None
        return [*program, str(overlay), *(["--enable-helm", f"--helm-command={helm}"] if helm else [])]


def obstacles(name: str, files: Iterable[KustomizationFile], *, inflate: bool) -> Iterator[Failure]:
    """Say why a kustomization, and all that it builds on, is not built."""
    count = 0
    directory = os.path.realpath(name)
    for file in files:
        for refused in (*file.refused, *(file.refused_inflating if inflate else ())):
            remedy = refused.remedy.format(name)
            problem = Problem(file.file, refused.line, refused.column, refused.message, remedy)
            yield Failure(name, problem, refused.cause, directory)
            count += 1
        if file.inflates and not inflate:
            problem = Problem(
                file.file, *file.inflates, "inflates Helm charts, which runs Helm and may fetch them", _INFLATE
            )
            yield Failure(name, problem, problem.message, directory)
            count += 1
        charts = (obstacle(chart) for chart in (file.charts if inflate else ()))
        for wrong in filter(None, charts):
            yield Failure(name, wrong, directory=directory)
            count += 1
    if not count and shutil.which("kustomize") is None and shutil.which("kubectl") is None:
        where = os.path.join(name, "kustomization.yaml")  # noqa: PTH118 -- the user's `./` stays
        yield Failure(name, Problem(where, 0, 0, _NO_PROGRAM, _ABSENT, note=True), _NO_PROGRAM, directory)


def kustomization_problem(job: KustomizationJob, stderr: str, stopped: str) -> Problem:
    """Return what went wrong, at the line of the file that names what kustomize complains of."""
    if stopped:
        remedy = "build it by hand to see why: `kustomize build`, or raise --render-timeout"
        return Problem(job.file.file, 0, 0, f"kustomize {stopped}", remedy)
    directory, text = _cause(_text(stderr))
    real = os.path.realpath(directory) if directory else job.file.directory
    file = next((part for part in job.parts if part.directory == real), job.file)
    remedy = f"correct it; `kustomize build {job.name}` reports the same"
    resource = _RESOURCE.search(text)
    blames = _resource(file, resource["file"]) if resource else ""
    if resource and blames and not resource["cause"].startswith(_REGISTERED):
        cause = _AS_DIRECTORY.sub("", resource["cause"])
        return Problem(blames, 0, 0, f"cannot be read by kustomize: {shortened(cause)}", remedy, blames=blames)
    message = f"cannot be built: {shortened(_AS_DIRECTORY.sub('', text))}"
    for line, word in _named(text, file.text):
        column = file.text.splitlines()[line - 1].index(word) + 1
        return Problem(file.file, line, column, message, remedy, end=column + len(word))
    return Problem(file.file, 0, 0, message, remedy)


def _text(stderr: str) -> str:
    """Return the error among what was written: the last line, or what kubectl logs."""
    logged = _LOGGED.search(stderr)
    if logged:
        message = stderr[logged.end() :].strip()
        message = (
            message[1:].removesuffix(">")
            if message.startswith("<")
            else message[1:].removesuffix('"').replace('\\"', '"')
        )
        return "; ".join(line.strip() for line in message.splitlines() if line.strip())
    lines = [line for line in stderr.splitlines() if line.strip()]
    text = lines[-1].strip() if lines else "kustomize failed without an error message"
    return text.removeprefix("error: ").removeprefix("Error: ")


def _cause(text: str) -> tuple[str, str]:
    """Return the directory that a message is about in the end, empty for the first, and what it says of it."""
    steps = list(_AT.finditer(text))
    directory, text = (steps[-1]["directory"], text[steps[-1].end() :]) if steps else ("", text)
    for step in _STEPS:
        text = text.removeprefix(step)
    return directory, text


def _resource(file: KustomizationFile, named: str) -> str:
    """Return the name of a resource of a kustomization for people; empty where it has no such file."""
    real = os.path.realpath(os.path.join(file.directory, named))  # noqa: PTH118 -- a text for realpath
    if real not in file.resources:
        return ""
    return os.path.normpath(os.path.join(os.path.dirname(file.file), named))  # noqa: PTH118, PTH120 -- the user's spelling


def _named(message: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines, from 1, that alone hold a word which is named in what was said."""
    lines = text.splitlines()
    for quoted in _QUOTED.finditer(message):
        at = [number for number, line in enumerate(lines, 1) if quoted[1] in line]
        if len(at) == 1:
            yield at[0], quoted[1]
