from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]

Answer = Literal["none", "found", "unreachable", "absent"]

# Stands for pip-audit v2.10.1: its options as far as they matter, its exit codes and what it prints.
PIP_AUDIT = """
import json, os, sys
source = sys.argv[sys.argv.index("-s") + 1]
asked = open(sys.argv[sys.argv.index("-r") + 1]).read()
of_ours, of_the_known = json.loads(os.environ["ANSWERS"])[source]
answer = of_the_known if asked.startswith("pyyaml==5.3.1") else of_ours
if answer == "none":
    sys.stderr.write("No known vulnerabilities found\\n")
elif answer == "found":
    sys.exit("Found 1 known vulnerability in 1 package")
elif answer == "absent":
    sys.exit("ERROR:pip_audit._cli:pyyaml: Dependency not found on PyPI and could not be audited: pyyaml (5.3.1)")
else:
    sys.exit("requests.exceptions.ConnectionError: Failed to resolve")
"""
SILENT: tuple[Answer, Answer] = ("unreachable", "unreachable")


@pytest.fixture
def pip_audit(tmp_path: Path) -> str:
    (tmp_path / "pip_audit.py").write_text(PIP_AUDIT, encoding="utf-8")
    return str(tmp_path)


@pytest.fixture
def requirements(tmp_path: Path) -> str:
    file = tmp_path / "requirements.txt"
    file.write_text("flask==3.1.3\n", encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    ("pypi", "osv", "code"),
    [
        (("none", "found"), SILENT, 0),
        (("found", "found"), SILENT, 1),
        (("unreachable", "found"), SILENT, 4),
        (SILENT, ("none", "found"), 0),
        (SILENT, ("found", "found"), 1),
        (SILENT, SILENT, 4),
        (("absent", "absent"), SILENT, 4),
        (("none", "none"), SILENT, 4),
        (("none", "none"), ("none", "none"), 4),
    ],
)
def test_exit_code(
    run: Run, pip_audit: str, requirements: str, pypi: tuple[Answer, Answer], osv: tuple[Answer, Answer], code: int
) -> None:
    ran = run("advisories.py", requirements, PYTHONPATH=pip_audit, ANSWERS=_answers(pypi, osv))
    assert ran.returncode == code


@pytest.mark.parametrize("pypi", [SILENT, ("absent", "absent"), ("none", "none")])
def test_what_is_said_when_nobody_knows(
    run: Run, pip_audit: str, requirements: str, pypi: tuple[Answer, Answer]
) -> None:
    ran = run("advisories.py", requirements, PYTHONPATH=pip_audit, ANSWERS=_answers(pypi, SILENT))
    assert ran.stderr.splitlines()[-1] == "error: no advisory source could be reached: nothing is known"
    assert "No known vulnerabilities" not in ran.stdout + ran.stderr


def test_a_source_that_breaks_off(run: Run, pip_audit: str, requirements: str) -> None:
    answers = _answers(("unreachable", "found"), SILENT)
    ran = run("advisories.py", requirements, PYTHONPATH=pip_audit, ANSWERS=answers)
    assert ran.stderr.splitlines()[-1] == "error: pypi did not answer for everything: not all is known"


def _answers(pypi: tuple[Answer, Answer], osv: tuple[Answer, Answer]) -> str:
    return f'{{"pypi": ["{pypi[0]}", "{pypi[1]}"], "osv": ["{osv[0]}", "{osv[1]}"]}}'
