from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests.inputs import Chart
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.rendering.chart_links import obstacle
from gpugate.webhook.rendering.options import RenderOptions
from gpugate.webhook.rendering.render import rendered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tree = Callable[[dict[str, str]], Path]

FILES = {
    "secret": "s3cr3t",
    "repo/.git/config": "",
    "repo/common/a.yaml": "a: 1\n",
    "repo/deep/b/c.yaml": "",
    "repo/app/templates/a.yaml": "",
}
# A link, what it leads to, and whether it leads out.
LINKS: dict[str, tuple[str, str, bool]] = {
    "to a file in the work tree": ("repo/app/a", "../common/a.yaml", False),
    "to a directory in the work tree": ("repo/app/charts", "../common", False),
    "to a directory above it": ("repo/app/templates/up", "..", False),
    "to nothing in the work tree": ("repo/app/a", "nothing", False),
    "beside the chart": ("repo/common/a", "../../secret", False),
    "to a file outside": ("repo/app/stolen", "../../secret", True),
    "to a directory outside": ("repo/app/charts", "/usr", True),
    "to a device": ("repo/app/templates/z.yaml", "/dev/zero", True),
    "to what git keeps": ("repo/app/stolen", "../.git/config", True),
    "in a subdirectory": ("repo/app/templates/stolen", "../../../secret", True),
}


@pytest.mark.parametrize(("link", "to", "leads_out"), LINKS.values(), ids=LINKS)
def test_a_link_out_of_the_work_tree_is_found(link: str, to: str, leads_out: bool, tree: Tree) -> None:  # noqa: FBT001 -- a column of the table
    root = tree(FILES)
    (root / link).symlink_to(to)

    found = obstacle(str(root / "repo/app"))

    assert (found and found.source) == (str(root / link) if leads_out else None)


def test_a_link_to_the_top_of_the_repository_leads_to_what_git_keeps(tree: Tree) -> None:
    root = tree(FILES)
    (root / "repo/app/up").symlink_to("..")

    found = obstacle(str(root / "repo/app"))

    assert found is not None
    assert found.source == str(root / "repo/app/up/.git")


def test_a_link_is_followed_to_links_that_lead_out(tree: Tree) -> None:
    root = tree(FILES)
    (root / "repo/app/charts").symlink_to("../deep")
    (root / "repo/deep/b/stolen").symlink_to("../../../secret")

    found = obstacle(str(root / "repo/app"))

    assert found is not None
    assert found.source == str(root / "repo/app/charts/b/stolen")


def test_without_a_work_tree_no_link_leads_out_of_it(tree: Tree) -> None:
    root = tree({"secret": "", "app/templates/a.yaml": ""})
    (root / "app/stolen").symlink_to("../secret")

    assert obstacle(str(root / "app")) is None


def test_a_chart_with_a_link_out_is_not_rendered_and_nothing_of_it_is_read(tree: Tree) -> None:
    root = tree({"secret": "s3cr3t: [\n", "repo/.git/config": "", "repo/app/values.yaml": ""})
    (root / "repo/app/Chart.yaml").symlink_to("../../secret")

    made = rendered([Chart(str(root / "repo/app"))], RenderOptions("1.35"))

    assert made.parts == [
        Problem(
            str(root / "repo/app/Chart.yaml"),
            0,
            0,
            "a link out of the repository, to which a template of this chart could look",
            "put a file in its place, or leave the chart out with --exclude",
            of_rendering=True,
        )
    ]


def test_a_chart_that_is_the_repository_leads_not_out(tree: Tree) -> None:
    root = tree(FILES)

    assert obstacle(str(root / "repo")) is None
