from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from library_examples import read_example

import gpugate.policies
from gpugate.policies.engine.config import GpugateError
from gpugate.tools.new_policy import scaffold


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    root = tmp_path / "policies"
    root.mkdir()
    shutil.copy(Path(gpugate.policies.__file__).parent / "catalog.py", root)
    return root


def test_it_makes_the_four_places(policies: Path) -> None:
    assert scaffold(policies, "pods/some-bad-pattern", "POD") == [
        "wrote policies/pods/some_bad_pattern.py",
        "wrote policies/pods/examples/some_bad_pattern/bad-first.yaml",
        "wrote policies/pods/examples/some_bad_pattern/good-first.yaml",
        "wrote policies/pods/__init__.py",
        "listed it in policies/catalog.py",
    ]


def test_what_it_makes_is_python_and_an_example_that_expects_the_policy(policies: Path) -> None:
    scaffold(policies, "scaling/some-bad-pattern", "SCALED_OBJECT")
    file = policies / "scaling/some_bad_pattern.py"
    compile(file.read_text(), file.name, "exec")
    bad = policies / "scaling/examples/some_bad_pattern/bad-first.yaml"
    assert [each.policy for each in read_example(bad.name, bad.read_text()).expected] == ["scaling/some-bad-pattern"]


def test_the_catalogue_lists_it_behind_its_family(policies: Path) -> None:
    scaffold(policies, "pods/some-bad-pattern", "POD")
    lines = [line.strip() for line in (policies / "catalog.py").read_text().splitlines()]
    assert lines[lines.index('"pods/some-bad-pattern",') - 1].startswith('"pods/')
    assert not lines[lines.index('"pods/some-bad-pattern",') + 1].startswith('"pods/')


@pytest.mark.parametrize(
    ("policy", "kind", "says"),
    [
        ("Pods/x", "POD", "ID=family/name-of-the-bad-pattern"),
        ("pods/x", "Pod", "CONSTANT is one of .*POD"),
        ("", "", "ID=family/name-of-the-bad-pattern"),
    ],
)
def test_it_refuses_what_is_no_policy(policies: Path, policy: str, kind: str, says: str) -> None:
    with pytest.raises(GpugateError, match=says):
        scaffold(policies, policy, kind)


def test_it_overwrites_nothing(policies: Path) -> None:
    scaffold(policies, "pods/some-bad-pattern", "POD")
    with pytest.raises(GpugateError, match="pods/some-bad-pattern exists"):
        scaffold(policies, "pods/some-bad-pattern", "POD")
