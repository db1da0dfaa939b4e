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

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.webhook.rendering.kustomization_files import KustomizationFile

_ABSENT: Final = "install kustomize or kubectl, leave it out with --exclude, or read files as they are with --no-render"
_INFLATE: Final = "say --enable-helm if you trust it, or give the chart itself to gpugate"
_QUOTED: Final = re.compile(r"""['"]([^'"\s]{2,})['"]""")
_LOGGED: Final = re.compile(r'^E\d{4} .*? err="(?P<text>.*)"$')  # kubectl logs its error where it has no terminal
_LONGEST: Final = 600


@dataclass(frozen=True, slots=True)
class KustomizationJob:
    """A kustomization to build: its directory as the user wrote it, and what is in its file."""

    name: str
    file: KustomizationFile
    inflate: bool = False

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
        program = [found, "build"] if (found := shutil.which("kustomize")) else ["kubectl", "kustomize"]
        helm = shutil.which("helm") if self.inflate else None
        return [*program, str(overlay), *(["--enable-helm", f"--helm-command={helm}"] if helm else [])]


def obstacles(name: str, files: Iterable[KustomizationFile], *, inflate: bool) -> Iterator[Problem]:
    """Say why a kustomization, and all that it builds on, is not built."""
    for file in files:
        for refused in (*file.refused, *(file.refused_inflating if inflate else ())):
            yield Problem(file.file, refused.line, refused.column, refused.message, refused.remedy.format(name))
        if file.inflates and not inflate:
            yield Problem(
                file.file, *file.inflates, "inflates Helm charts, which runs Helm and may fetch them", _INFLATE
            )
        charts = (obstacle(chart) for chart in (file.charts if inflate else ()))
        yield from (found for found in charts if found)
    if shutil.which("kustomize") is None and shutil.which("kubectl") is None:
        where = os.path.join(name, "kustomization.yaml")  # noqa: PTH118 -- the user's `./` stays
        yield Problem(where, 0, 0, "a kustomization, and neither kustomize nor kubectl is on PATH", _ABSENT)


def kustomization_problem(job: KustomizationJob, said: str, stopped: str) -> Problem:
    """Return what went wrong, at the line of the kustomization that names what kustomize complains of."""
    if stopped:
        remedy = "build it by hand to see why: `kustomize build`, or raise --render-timeout"
        return Problem(job.file.file, 0, 0, f"kustomize {stopped}", remedy)
    lines = [line for line in said.splitlines() if line.strip()]
    text = lines[-1].strip() if lines else "kustomize failed and said nothing"
    logged = _LOGGED.match(text)
    text = logged["text"].replace('\\"', '"') if logged else text.removeprefix("error: ").removeprefix("Error: ")
    remedy = f"mend it; `kustomize build {job.name}` says the same"
    for line, word in _named(text, job.file.text):
        column = job.file.text.splitlines()[line - 1].index(word) + 1
        return Problem(
            job.file.file, line, column, f"cannot be built: {text}"[:_LONGEST], remedy, end=column + len(word)
        )
    return Problem(job.file.file, 0, 0, f"cannot be built: {text}"[:_LONGEST], remedy)


def _named(said: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines, from 1, that alone hold a word which is quoted in what was said."""
    lines = text.splitlines()
    for found in _QUOTED.finditer(said):
        at = [number for number, line in enumerate(lines, 1) if found[1] in line]
        if len(at) == 1:
            yield at[0], found[1]
