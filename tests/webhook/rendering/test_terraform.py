"""What configurations of Terraform name: templates, files and charts, inside the tree only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests import terraform
from gpugate.webhook.manifests.inputs import Chart, Input, Language, Passed, Selection, sources
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.rendering.options import RenderOptions
from gpugate.webhook.rendering.render import rendered
from gpugate.webhook.rendering.terraform import configured

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
CHART = "apiVersion: v2\nname: app\nversion: 1.0.0\n"


def inputs(*paths: str) -> dict[str, Language | None]:
    found = configured(list(sources(paths))).parts
    return {part.name: part.language for part in found if isinstance(part, Input)}


NAMED: dict[str, tuple[str, dict[str, Language | None]]] = {
    "a template of the directory": (
        'x = templatefile("${path.module}/pod.yaml", {})',
        {"m/main.tf": Language.HCL, "m/pod.yaml": Language.TEMPLATE},
    ),
    "a template of another name": (
        'x = templatefile("pod.tpl", {})',
        {"m/main.tf": Language.HCL, "m/pod.tpl": Language.TEMPLATE, "m/pod.yaml": None},
    ),
    "a template beside the directory": (
        'x = templatefile("../beside.yaml", {})',
        {"beside.yaml": Language.TEMPLATE, "m/main.tf": Language.HCL, "m/pod.yaml": None},
    ),
    "a file beside the directory": (
        'x = file("../beside.yaml")',
        {"beside.yaml": None, "m/main.tf": Language.HCL, "m/pod.yaml": None},
    ),
    "a file that is there already": ('x = file("pod.yaml")', {"m/main.tf": Language.HCL, "m/pod.yaml": None}),
    "a file that is missing": ('x = file("gone.yaml")', {"m/main.tf": Language.HCL, "m/pod.yaml": None}),
    "a file out of the tree": (
        'x = templatefile("../../outside.yaml", {})\ny = templatefile("/etc/outside.yaml", {})',
        {"m/main.tf": Language.HCL, "m/pod.yaml": None},
    ),
    "a link out of the tree": ('x = templatefile("link.tpl", {})', {"m/main.tf": Language.HCL, "m/pod.yaml": None}),
    "a file of git": ('x = templatefile("../.git/a.tpl", {})', {"m/main.tf": Language.HCL, "m/pod.yaml": None}),
}


@pytest.mark.parametrize(("text", "found"), NAMED.values(), ids=NAMED)
def test_files_that_a_configuration_names_are_read_within_the_tree(
    text: str, found: dict[str, Language | None], tree: Callable[..., Path]
) -> None:
    root = tree({"m/main.tf": text, "m/pod.yaml": POD, "m/pod.tpl": POD, "beside.yaml": POD, ".git/a.tpl": POD})
    (root.parent / "outside.yaml").write_text(POD)
    (root / "m/link.tpl").symlink_to(root.parent / "outside.yaml")

    assert dict(sorted(inputs("m").items())) == found


def test_only_what_is_rendered_otherwise_is_configured(tree: Callable[..., Path]) -> None:
    tree({"main.tf": f"x = <<E\n{POD}E\n", "a.yaml": POD})

    assert inputs("a.yaml") == {"a.yaml": None}
    assert inputs("main.tf") == {"main.tf": Language.HCL}
    changed = list(sources(["."], Selection(changed=frozenset())))
    assert changed == []


def test_without_the_parser_configurations_are_counted(
    tree: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree({"a.tf": "", "b/c.tf": "", "pod.yaml": POD})
    monkeypatch.setattr(terraform, "is_readable", lambda: False)

    all_of_it, named = configured(list(sources(["."]))).parts, configured(list(sources(["a.tf"]))).parts

    (passed,) = (part for part in all_of_it if isinstance(part, Passed))
    assert (passed.name, passed.reason) == (
        "2 Terraform files",
        "not read: install gpugate[terraform] to read Terraform",
    )
    assert [part.name for part in all_of_it if isinstance(part, Input)] == ["./pod.yaml"]
    assert [part.source for part in named if isinstance(part, Problem)] == ["a.tf"]


# As much of `helm template` as values are about: it writes them, and fails for those of one name.
HELM = """
import pathlib, sys
values = [pathlib.Path(flag.partition("=")[2]).read_text() for flag in sys.argv if flag.startswith("--values=")]
if any("wrong" in each for each in values):
    sys.exit("Error: execution error at (app/templates/a.yaml:1:1): wrong")
print(f"a: {values!r}")
"""
INSTALLED = """resource "helm_release" "one" {
  chart     = "${path.module}/../app"
  namespace = "ml"
  values    = [<<-E
    a: ${var.a}
    E
  ]
}
"""


def test_a_chart_is_rendered_with_the_values_of_its_release(
    tree: Callable[..., Path], program: Callable[[str, str], Path]
) -> None:
    program("helm", HELM)
    tree({"app/Chart.yaml": CHART, "app/templates/a.yaml": "", "m/main.tf": INSTALLED})

    read = configured(list(sources(["m"])))
    made = rendered(read.parts, RenderOptions("1.36", charts=read.charts))

    assert [part for part in read.parts if isinstance(part, Chart)] == [Chart("app")]
    (text,) = made.texts.values()
    assert text.text == "a: ['a: ${var.a}\\n']\n"
    assert text.job.label == "app (rendered with helm_release.one of m/main.tf:1)"


def test_values_that_a_chart_does_not_take_are_left_out(
    tree: Callable[..., Path], program: Callable[[str, str], Path]
) -> None:
    program("helm", HELM)
    tree({"app/Chart.yaml": CHART, "m/main.tf": INSTALLED.replace("var.a", "var.wrong")})

    read = configured(list(sources(["."])))

    (text,) = rendered(read.parts, RenderOptions("1.36", charts=read.charts)).texts.values()
    assert text.text == "a: []\n"


def test_a_chart_out_of_the_tree_is_not_installed(tree: Callable[..., Path]) -> None:
    root = tree({"m/main.tf": INSTALLED.replace("../app", "../../app"), ".git/x": ""})
    (root.parent / "app").mkdir(exist_ok=True)
    (root.parent / "app/Chart.yaml").write_text(CHART)

    assert configured(list(sources(["m"]))).charts == ()
