from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests.inputs import Chart, Input
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.rendering.charts import ChartJob
from gpugate.webhook.rendering.options import ChartValues, RenderOptions
from gpugate.webhook.rendering.render import rendered

if TYPE_CHECKING:
    from collections.abc import Callable

JOB = ChartJob("app", "app", "app", "default", "1.35")
# What Helm takes for a URL or for standard input, with what it is given instead.
VALUES = {
    "a file": ("a.yaml", "--values=a.yaml"),
    "what looks like a URL": ("http://localhost/a", "--values=./http://localhost/a"),
    "what looks like standard input": ("-", "--values=./-"),
    "what looks like two": ("a,b", '--values="a,b"'),
}


@pytest.mark.parametrize(("file", "flag"), VALUES.values(), ids=VALUES)
def test_a_values_file_is_a_file_whatever_it_is_called(file: str, flag: str) -> None:
    assert flag in replace(JOB, values=(file,)).command("helm", "app")


@pytest.mark.parametrize("chart", ["app ", " app", "--app ", "app\n"])
def test_a_chart_is_the_one_that_is_named_whatever_space_is_in_its_name(chart: str) -> None:
    named = JOB.command("helm", chart)[-1]

    assert named == named.strip()
    assert Path(named) == Path.cwd() / chart


@pytest.mark.usefixtures("helm")
def test_a_value_with_a_nul_is_a_problem_and_others_are_rendered(tree: Callable[..., Path]) -> None:
    tree({f"{name}/Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n" for name in ("a", "b")})
    options = RenderOptions("1.35", charts=(ChartValues("a", set=("x=a\0b",)),))

    made = rendered([Chart("a"), Chart("b")], options)

    assert [type(part) for part in made.parts] == [Problem, Input]
