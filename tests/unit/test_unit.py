"""Two processes run each test once, and a failure in either of them is a failure of both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("unit.py")
# A module-scoped fixture ends with the last test of its file, also if the other process runs the file after it.
FILE = """
import pathlib, pytest

@pytest.fixture(scope="module")
def log():
    with (pathlib.Path(__file__).parents[3] / "ran").open("a") as file:
        yield file

@pytest.mark.parametrize("number", range(3))
def test_a_number(number, log):
    log.write(f"{__name__} {number}\\n")
"""
FOLDERS = ("a/b", "a/c", "d/e", "d/e/f", "g/h")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib -p no:cacheprovider\n")
    for number, folder in enumerate(FOLDERS):
        (tmp_path / "tests" / folder).mkdir(parents=True, exist_ok=True)
        text = FILE.replace("parents[3]", f"parents[{len(Path(folder).parts) + 1}]")
        (tmp_path / "tests" / folder / f"test_{number}.py").write_text(text)
    return tmp_path


def run(project: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), "-q"]
    # Other plugins take longer to start than the tests take.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(  # noqa: S603 -- ours
        command, cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_each_test_runs_once(project: Path) -> None:
    done = run(project)

    assert done.returncode == 0, done.stdout
    ran = sorted((project / "ran").read_text().splitlines())
    assert len(ran) == len(set(ran)) == 3 * len(FOLDERS)
    assert done.stdout.count(" in ") == 2


@pytest.mark.parametrize("folder", ["a/b", "d/e/f"])
def test_a_failure_in_either_process_is_reported(project: Path, folder: str) -> None:
    (project / "tests" / folder / "test_more.py").write_text("def test_bad():\n    assert 1 == 2\n")
    done = run(project)

    assert done.returncode == 1
    assert done.stdout.count("FAILED ") == 1


def test_a_file_that_is_not_collected_is_an_error(project: Path) -> None:
    (project / "tests" / "a" / "b" / "test_more.py").write_text("import missing_module\n")
    assert run(project).returncode == pytest.ExitCode.INTERRUPTED


def test_a_process_that_ends_before_its_tests_is_an_error(project: Path) -> None:
    (project / "tests" / "d" / "e" / "test_more.py").write_text("import os\n\ndef test_exit():\n    os._exit(9)\n")
    assert run(project).returncode == 9
