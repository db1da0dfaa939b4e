from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests.inputs import Input, Passed, Selection, expand
from gpugate.webhook.manifests.problems import Passing, Problem

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("b.yaml", "a.yml", "c.json", "d.txt", "deep/er/e.yaml", ".hidden/f.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


INPUTS = {
    "a directory": (["."], ["./a.yml", "./b.yaml", "./c.json", "./deep/er/e.yaml"]),
    "a file of any name": (["d.txt"], ["d.txt"]),
    "a pattern": (["*.y*ml"], ["a.yml", "b.yaml"]),
    "a deep pattern": (["**/e.yaml"], ["deep/er/e.yaml"]),
    "a deep pattern below a directory": (["deep/**/e.y*ml", "./**/*.json"], ["deep/er/e.yaml", "./c.json"]),
    "everything below": (["deep/**"], ["deep/er/e.yaml"]),
    "standard input": (["-"], ["-"]),
    "a file twice": (["b.yaml", ".", "./b.yaml"], ["b.yaml", "./a.yml", "./c.json", "./deep/er/e.yaml"]),
}


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(("paths", "names"), INPUTS.values(), ids=INPUTS)
def test_paths_stand_for_files(paths: list[str], names: list[str]) -> None:
    assert [found.name for found in expand(paths) if isinstance(found, Input)] == names


def passed(*paths: str) -> list[tuple[str, int]]:
    return [(part.name, part.hidden) for part in expand(paths) if isinstance(part, Passed)]


def test_the_yaml_files_in_hidden_directories_are_counted(tree: Path) -> None:
    for name in (".hidden/deep/.er/g.yml", ".hidden/h.json", ".git/i.yaml", ".empty/j.txt"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    (tree / ".hidden" / "loop").symlink_to(tree)

    assert passed(".") == [("./.hidden", 2)]
    assert passed(".hidden/deep") == [(".hidden/deep/.er", 1)]


def test_excluded_files_in_hidden_directories_are_not_counted(tree: Path) -> None:
    (tree / ".hidden" / "g.yaml").touch()

    found = list(expand(["."], Selection(exclude=("g.yaml",))))

    assert [part.hidden for part in found if isinstance(part, Passed)] == [1]


def test_a_named_file_is_explicit_and_one_of_a_directory_is_not(tree: Path) -> None:
    found = [part for part in expand([str(tree / "b.yaml"), str(tree / "deep")]) if isinstance(part, Input)]

    assert [part.explicit for part in found] == [True, False]


def problems(*paths: str) -> list[tuple[str, str]]:
    return [(part.source, part.message) for part in expand(paths) if isinstance(part, Problem)]


@pytest.mark.usefixtures("tree")
def test_a_missing_path_is_a_problem() -> None:
    assert problems("nowhere.yaml", "*.nothing") == [
        ("nowhere.yaml", "no such file or directory"),
        ("*.nothing", "no such file or directory"),
    ]


def test_a_directory_that_links_to_itself_is_a_problem(tree: Path) -> None:
    (tree / "deep" / "loop").symlink_to(tree / "deep")

    assert problems(".") == [("./deep/loop", "is a link to a directory above it")]


def test_a_link_that_leads_nowhere_in_a_directory_is_passed_over(tree: Path) -> None:
    (tree / "gone.yaml").symlink_to(tree / "nowhere")

    assert problems(".") == []


def test_a_pipe_is_a_problem(tree: Path) -> None:
    os.mkfifo(tree / "pipe.yaml")

    assert problems("pipe.yaml", "/dev/zero") == [
        ("pipe.yaml", "is neither a file nor a directory"),
        ("/dev/zero", "is neither a file nor a directory"),
    ]


def test_the_templates_of_a_chart_are_passed_over_with_a_hint(tree: Path) -> None:
    (tree / "deep" / "Chart.yaml").touch()
    (tree / "deep" / "templates").mkdir()
    (tree / "deep" / "templates" / "pod.yaml").touch()

    passed = [part for part in expand(["deep"]) if isinstance(part, Passed)]

    reason = "Helm templates: check what `helm template deep` makes of them"
    assert passed == [Passed("deep/templates", reason, passing=Passing.TEMPLATE)]


def test_a_file_that_may_not_be_read_is_a_problem(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path, flags: int) -> int:
        raise PermissionError(13, f"Permission denied{flags * 0 or ''}")

    monkeypatch.setattr("os.open", refuse)

    problem = Input(str(tree / "b.yaml"), explicit=True).read()

    assert isinstance(problem, Problem)
    assert (problem.message, problem.remedy) == ("permission denied", "make it readable for you")


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: 1\n")))

    assert Input("-", explicit=True).read() == b"a: 1\n"


def test_standard_input_that_is_closed_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)

    assert isinstance(Input("-", explicit=True).read(), Problem)


def test_a_file_above_the_limit_is_a_problem_and_is_not_read(tree: Path) -> None:
    with (tree / "huge.yaml").open("wb") as huge:
        huge.truncate((64 << 20) + 1)

    problem = Input(str(tree / "huge.yaml"), explicit=True).read()

    assert isinstance(problem, Problem)
    assert (problem.message, problem.remedy) == ("larger than 64 MiB", "split it")


def test_links_in_a_pattern_are_not_followed_in_circles(tree: Path) -> None:
    for name in ("one", "two", "three"):
        (tree / "deep" / name).symlink_to(tree / "deep")

    assert [found.name for found in expand(["**/*.yaml"]) if isinstance(found, Input)] == ["b.yaml", "deep/er/e.yaml"]


def test_a_directory_that_many_links_lead_to_is_read_once(tree: Path) -> None:
    # 2^30 ways lead to the last one.
    for depth in range(30):
        (tree / f"l{depth}").mkdir()
        for name in ("x", "y"):
            (tree / f"l{depth}" / name).symlink_to(tree / f"l{depth + 1}")
    (tree / "l30").mkdir()
    (tree / "l30/last.yaml").touch()

    found = [found.name for found in expand(["l0"]) if isinstance(found, Input)]

    assert [name.rpartition("/")[2] for name in found] == ["last.yaml"]


def test_a_tree_that_is_too_deep_is_a_problem_and_the_rest_is_read(tree: Path) -> None:
    (tree / "/".join("n" * 600)).mkdir(parents=True)

    found = list(expand(["."]))

    assert [part.message for part in found if isinstance(part, Problem)] == ["is more than 128 directories deep"]
    assert len([part for part in found if isinstance(part, Input)]) == 4


def test_a_link_out_of_a_repository_is_passed_over_and_said(tree: Path, tmp_path: Path) -> None:
    root = tree / "deep"
    (root / ".git").mkdir()
    (root / "passwords.yaml").symlink_to(tmp_path / "b.yaml")
    (root / "all").symlink_to("/")
    (root / "inside.yaml").symlink_to(root / "er/e.yaml")

    found = list(expand(["deep"]))

    assert [part.name for part in found if isinstance(part, Passed)] == ["deep/all", "deep/passwords.yaml"]
    assert [part.name for part in found if isinstance(part, Input)] == ["deep/er/e.yaml"]


def test_a_path_that_no_file_can_have_is_a_problem() -> None:
    (problem,) = expand(["a\0b"])

    assert isinstance(problem, Problem)
    assert "is not a valid file name" in problem.message


def test_what_no_file_can_be_called_cannot_be_read() -> None:
    problem = Input("a\0b", explicit=True).read()

    assert isinstance(problem, Problem)
    assert "is not a valid file name" in problem.message


def test_a_pipe_without_end_is_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpugate.webhook.manifests.inputs.MAX_BYTES", 10)

    assert Input("/dev/zero", explicit=True).read() == bytes(11)


def test_a_device_in_the_place_of_a_file_is_not_read(tree: Path) -> None:
    (tree / "pipe").symlink_to("/dev/zero")

    problem = Input(str(tree / "pipe"), explicit=True).read()

    assert isinstance(problem, Problem)
    assert problem.message == "is not a regular file"
