from __future__ import annotations

from pathlib import Path

import pytest

from gpugate.webhook.rendering.charts import staged


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    made = tmp_path / "app"
    (made / "templates").mkdir(parents=True)
    (made / "Chart.yaml").write_text("name: app\n")
    (made / "templates" / "pod.yaml").write_text("kind: Pod\n")
    return made


def test_a_chart_within_a_repository_is_rendered_where_it_is(chart: Path, tmp_path: Path) -> None:
    assert staged(str(chart), str(tmp_path / "home")) == str(chart)


@pytest.mark.parametrize("is_worktree", [False, True], ids=["a repository", "a further work tree, where it is a file"])
def test_of_a_chart_that_is_one_helm_sees_all_but_what_is_gits(
    chart: Path,
    tmp_path: Path,
    is_worktree: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    git = chart / ".git"
    if is_worktree:
        git.write_text("gitdir: elsewhere\n")
    else:
        git.mkdir()
        (git / "config").write_text("[core]\n")

    stage = Path(staged(str(chart), str(tmp_path / "home")))

    assert sorted(each.name for each in stage.iterdir()) == ["Chart.yaml", "templates"]
    assert (stage / "templates" / "pod.yaml").read_text() == "kind: Pod\n"
    assert stage.name == "app"
