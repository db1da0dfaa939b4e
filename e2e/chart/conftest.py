"""The chart as the real Helm renders it, without a cluster; in `installed` on one: `make packages`, or `make e2e K=chart`."""

from __future__ import annotations

import pickle
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import tools

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]
CHART = Path(__file__).parents[2] / "charts" / "gpugate"
CASES = sorted((CHART / "ci").glob("*-values.yaml"))
# Chosen here, so that nothing depends on the release that a test happens to render.
RELEASE = "gate"
NAMESPACE = "guard"


@dataclass(frozen=True)
class Helm:
    """A program: `ran` for its own answer, `objects` for what a chart becomes.

    Attributes:
        program: the file.
        rendered: flags, and the content of the files among them -> the pickled objects of the chart.
    """

    program: Path
    rendered: dict[tuple[str | bytes, ...], bytes] = field(default_factory=dict)

    def ran(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [str(self.program), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603 -- helm, with arguments of ours

    def template(self, *flags: str | Path) -> subprocess.CompletedProcess[str]:
        return self.ran("template", RELEASE, CHART, "--namespace", NAMESPACE, *flags)

    def objects(self, *flags: str | Path) -> list[Json]:
        """Render the chart, once for the same flags and files; each caller gets objects of its own."""
        key = tuple(flag.read_bytes() if isinstance(flag, Path) else flag for flag in flags)
        if key not in self.rendered:
            rendered = self.template(*flags)
            assert rendered.returncode == 0, rendered.stderr
            found = [each for each in yaml.load_all(rendered.stdout, yaml.CSafeLoader) if each]
            self.rendered[key] = pickle.dumps(found)
        objects: list[Json] = pickle.loads(self.rendered[key])  # noqa: S301 -- pickled above
        return objects

    def refusal(self, *flags: str | Path) -> str:
        rendered = self.template(*flags)
        assert rendered.returncode != 0, "it was rendered"
        return rendered.stderr


@pytest.fixture(scope="session", params=["helm", "helm3"])
def helm(request: pytest.FixtureRequest) -> Helm:
    try:
        return Helm(tools.path(request.param))
    except tools.ToolsError as error:
        pytest.exit(str(error), returncode=1)


@pytest.fixture(scope="session")
def render(helm: Helm) -> Callable[..., dict[tuple[str, str], Json]]:
    """Objects by kind and name."""

    def rendered(*flags: str | Path) -> dict[tuple[str, str], Json]:
        return {(each["kind"], each["metadata"]["name"]): each for each in helm.objects(*flags)}

    return rendered
