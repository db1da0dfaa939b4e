from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from gpugate.webhook.rendering.charts import ChartJob, chart_problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOB = ChartJob("app", "app", "app", "default", "1.35", ("prod.yaml",))


class Said(NamedTuple):
    """What Helm 3.22 or 4.3 said, and where it is shown with which advice."""

    text: str
    file: str
    line: int
    column: int
    remedy: str


SAID = {
    "a value that is required": Said(
        "Error: execution error at (app/templates/a.yaml:2:3): need x\n\nUse --debug flag to render out invalid YAML\n",
        "app/templates/a.yaml", 2, 4, "set the required values",
    ),
    "a template that is none": Said(
        "Error: parse error at (app/templates/a.yaml:2): missing value for if\n", "app/templates/a.yaml", 2, 1, "correct it"
    ),
    "a definition, in the words of Helm 3": Said(
        'Error: template: app/templates/a.yaml:1:3: executing "app/templates/a.yaml" at <include "x" .>: error calling '
        'include: template: app/templates/_x.tpl:2:10: executing "x" at <.Values.a.b.c>: nil pointer\n',
        "app/templates/_x.tpl", 2, 11, "correct it",
    ),
    "a definition, in the words of Helm 4": Said(
        'Error: app/templates/a.yaml:1:3\n  executing "app/templates/a.yaml" at <include "x" .>:\n'
        '    error calling include:\napp/templates/_x.tpl:2:10\n  executing "x" at <.Values.a.b.c>:\n    nil pointer\n',
        "app/templates/_x.tpl", 2, 11, "correct it",
    ),
    "what is no YAML": Said(
        "Error: YAML parse error on app/templates/a.yaml: error converting YAML to JSON: yaml: line 2: mapping values\n",
        "app/templates/a.yaml", 0, 0, "correct it",
    ),
    "the chart's own values": Said(
        "Error: cannot load values.yaml: error converting YAML to JSON: yaml: line 1: did not find\n",
        "app/values.yaml", 1, 1, "correct the YAML",
    ),
    "a values file": Said(
        "Error: failed to parse prod.yaml: error converting YAML to JSON: yaml: line 3: did not find\n",
        "prod.yaml", 3, 1, "correct the YAML",
    ),
    "a dependency that was not fetched": Said(
        "Error: An error occurred while checking for chart dependencies: found in Chart.yaml, but missing in charts/ directory: b\n",
        "app/Chart.yaml", 0, 0, "run `helm dependency build app` first",
    ),
    "values against the schema": Said(
        "Error: values don't meet the specifications of the schema(s) in the following chart(s):\napp:\n- at '/a': got\n",
        "app/Chart.yaml", 0, 0, "set values that match its schema",
    ),
    "a version of Kubernetes": Said(
        "Error: chart requires kubeVersion: >=1.99 which is incompatible with Kubernetes v1.35.0\n",
        "app/Chart.yaml", 0, 0, "set the target",
    ),
    "a template of an archive": Said(
        "Error: execution error at (app/charts/b/templates/a.yaml:2:3): need x\n", "app/Chart.yaml", 0, 0, "set the"
    ),
    "nothing": Said("", "app/Chart.yaml", 0, 0, "correct it"),
}  # fmt: skip


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_what_helm_says_is_shown_at_its_place(said: Said, tree: Callable[..., Path]) -> None:
    files = ("app/templates/a.yaml", "app/templates/_x.tpl", "app/Chart.yaml", "app/values.yaml", "prod.yaml")
    tree(dict.fromkeys(files, "one\ntwo\nthree\n"))

    problem = chart_problem(JOB, said.text, "")

    assert (problem.source, problem.line, problem.column) == (said.file, said.line, said.column)
    assert problem.remedy.startswith(said.remedy)
    assert "prod.yaml" in problem.message
    assert bool(problem.excerpt.lines) == bool(said.line)


def test_what_was_stopped_says_so(tree: Callable[..., Path]) -> None:
    tree({"app/Chart.yaml": ""})

    problem = chart_problem(JOB, "", "did not end within 5 s")

    assert (problem.source, problem.message) == ("app/Chart.yaml", "helm did not end within 5 s with prod.yaml")


def test_words_of_any_length_are_looked_through() -> None:
    """In linear time: a chart says what it likes."""
    said = f"Error: execution error at (app/templates/a.yaml:2:3): {'a/templates/' * 50_000}the cause"

    message = chart_problem(JOB, said, "").message

    assert message.startswith("cannot be rendered with prod.yaml: execution error at")
    assert message.endswith("the cause")
    assert len(message) < 700
