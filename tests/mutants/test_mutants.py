from __future__ import annotations

from collections import Counter
from types import ModuleType
from typing import TYPE_CHECKING, Any

import mutant_runs
import mutant_switch
import mutants
import pytest
import yaml
from mutant_points import Mutant, instrumented
from mutant_runs import KILLED, SURVIVED, TIMED_OUT, UNREACHED, in_processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FUNCTION = """
def f(a, b):
    {}
"""


def found(source: str) -> list[Mutant]:
    return instrumented(source, "a.py", "a.py", 0)[1]


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("a = b < 1", ["a = b <= 1", "a = b < 2"]),
        ("a = 0 <= b < 9", ["a = 1 <= b < 9", "a = 0 < b < 9", "a = 0 <= b <= 9", "a = 0 <= b < 10"]),
        ("a = b and 'key'", ["a = b or 'key'", "a = b and 'XXkeyXX'"]),
        ("a = not b", ["a = b"]),
        ("a = -b", ["a = b"]),
        ("a = b + b", ["a = b - b"]),
        ("a += b", ["a -= b"]),
        ("a = min(b)", ["a = max(b)"]),
        ("a = b.lstrip()", ["a = b.rstrip()"]),
        ("a = b(x=a, y=b)", ["a = b(y=b)", "a = b(x=a)"]),
        ("a = True", ["a = False"]),
        ("return b", ["return None"]),
        ("return", ["pass"]),
        ("b(a)", ["pass"]),
        ("raise b", ["pass"]),
        ("a.b = b", ["pass"]),
        ("if a: return", ["if not a:", "pass"]),
        ("a = [x for x in b if x]", ["a = [x for x in b if not x]"]),
        ("a = f'{b + b} of them'", ["a = f'{b - b} of them'"]),
        ("a: int = b", []),
        ("a = 'for people to read'", []),
        ("a = zip(b, b, strict=True)", []),
        ("'A docstring.'", []),
    ],
)
def test_the_mutants_of_a_statement(statement: str, after: list[str]) -> None:
    assert sorted(mutant.after for mutant in found(FUNCTION.format(statement))) == sorted(after)


@pytest.mark.parametrize(
    "source",
    ["from typing import TypeAlias\nA: TypeAlias = int | str", "@f(1)\ndef g(): pass", "__slots__ = ('a',)"],
    ids=["type alias", "decorator", "slots"],
)
def test_what_has_no_mutants(source: str) -> None:
    assert found(source) == []


@pytest.mark.parametrize(
    ("source", "at_import"),
    [
        ("A = 1", True),
        ("class A:\n    b = 1", True),
        ("def f(a=1): pass", True),
        ("A = [1 for b in c]", True),
        ("def f():\n    a = 1", False),
        ("class A:\n    async def f():\n        a = 1", False),
        ("A = lambda: 1", False),
        ("def f():\n    class A:\n        b = 1", False),
    ],
)
def test_what_only_an_import_evaluates(source: str, at_import: bool) -> None:  # noqa: FBT001 -- a table's column
    assert [mutant.at_import for mutant in found(source)] == [at_import]


SOURCE = '''"""A module."""

from __future__ import annotations

LIMIT = 3


def over(value: int) -> bool:
    return value > LIMIT + 1
'''


@pytest.fixture
def active() -> Iterator[None]:
    before = mutant_switch.active
    yield
    mutant_switch.active = before


def executed(number: int | mutant_switch.Reached) -> ModuleType:
    mutant_switch.active = number
    module = ModuleType("made")
    exec(instrumented(SOURCE, "a.py", "a.py", 0)[0], module.__dict__)  # noqa: S102 -- the source above
    return module


@pytest.mark.usefixtures("active")
@pytest.mark.parametrize(
    ("after", "answers"),
    [
        (None, [False, True]),
        ("LIMIT = 4", [False, False]),
        ("return value >= LIMIT + 1", [True, True]),
        ("return value > LIMIT - 1", [True, True]),
        ("return value > LIMIT + 2", [False, False]),
        ("return None", [None, None]),
    ],
)
def test_one_mutant_is_active_at_a_time(after: str | None, answers: list[Any]) -> None:
    number = next((mutant.number for mutant in found(SOURCE) if mutant.after == after), mutant_switch.NONE)
    module = executed(number)
    assert [module.over(4), module.over(5)] == answers


@pytest.mark.usefixtures("active")
def test_what_is_reached_is_noted(tmp_path: Path) -> None:
    (tmp_path / "notes").write_bytes(bytes(len(found(SOURCE))))
    reached = mutant_switch.Reached(tmp_path / "notes")
    module = executed(reached)
    imported = reached.take()
    assert [module.over(5), reached.take(), reached.take()] == [True, [1, 2, 3, 4], []]
    assert imported == [0]


def test_a_mutant_has_the_same_key_and_share_when_lines_move() -> None:
    moved = SOURCE.replace("LIMIT = 3", "OTHER = None\n\n\nLIMIT = 3")
    assert [(m.key, m.share) for m in found(moved)] == [(m.key, m.share) for m in found(SOURCE)]
    assert [m.line for m in found(moved)] != [m.line for m in found(SOURCE)]


def test_modules_and_functions_are_listed_once() -> None:
    # PyYAML keeps only the last of equal keys.
    root = yaml.compose(mutants.EXPLAINED.read_text())
    sections = [root, *(functions for _, functions in root.value)]
    repeated = [Counter(key.value for key, _ in section.value).most_common(1)[0] for section in sections]
    assert [key for key, count in repeated if count > 1] == []


def test_every_explanation_is_of_a_mutant_and_has_a_reason() -> None:
    explained = mutants.read_explained(mutants.EXPLAINED.read_text())
    keys = {
        mutant.key
        for module in {key[0] for key in explained}
        for mutant in instrumented((mutants.ROOT / module).read_text(), module, module, 0)[1]
    }
    assert set(explained) - keys == set()
    assert [key for key, reason in explained.items() if len(reason.split()) < 4] == []


@pytest.mark.parametrize(
    ("counts", "unknown", "status"),
    [
        ({KILLED: 18, TIMED_OUT: 1, SURVIVED: 1}, False, 0),
        ({KILLED: 18, SURVIVED: 1}, False, 1),
        ({KILLED: 18, UNREACHED: 1}, False, 1),
        ({KILLED: 19, SURVIVED: 1, "explained": 9}, False, 0),
        ({KILLED: 20}, True, 1),
        ({}, False, 0),
    ],
    ids=["enough", "too few", "not reached", "explained", "an unknown explanation", "none"],
)
def test_the_run_fails_when_too_few_are_killed(counts: dict[str, int], *, unknown: bool, status: int) -> None:
    key = ("a.py", "f", "a < b", "a <= b")
    assert mutants.summary([("a.py", Counter(counts))], [key] if unknown else []) == status


def test_modules_are_asked_for_by_path_or_folder() -> None:
    asked = [
        mutants.asked("certs/pki.py", [path]) for path in ("", "certs", "certs/", "certs/pki.py", "cert", "pki.py")
    ]
    assert asked == [True, True, True, True, False, False]


@pytest.mark.parametrize("jobs", [1, 2])
def test_recordings_share_no_memory(tmp_path: Path, jobs: int) -> None:
    seen: list[int] = []

    def recording(number: int) -> Callable[[], int]:
        def run() -> int:
            seen.append(number)
            (tmp_path / str(number)).write_text(str(seen))
            return 0

        return run

    in_processes([recording(number) for number in range(3)], jobs)
    assert [(tmp_path / str(number)).read_text() for number in range(3)] == ["[0]", "[1]", "[2]"]


def test_a_failed_recording_ends_the_run() -> None:
    with pytest.raises(SystemExit, match="could not be recorded"):
        in_processes([lambda: 0, lambda: 1, lambda: 0], jobs=1)


def test_again_tries_the_survivors_of_a_sample_that_was_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mutants, "SURVIVORS", tmp_path / "survivors")
    left, other = ("a.py", "f", "a < b", "a <= b"), ("b.py", "f", "a < b", "a <= b")
    mutants.remember({"a.py", "c.py"}, 20, {left, other})
    assert mutants.left_over({"a.py", "c.py"}, 5) == mutants.left_over({"a.py"}, 20) == {left}
    for module, share in (("a.py", 21), ("b.py", 5)):
        with pytest.raises(SystemExit, match=f"{module} has not been run with this share yet"):
            mutants.left_over({module}, share)


@pytest.mark.parametrize(
    ("file", "distance"),
    [
        ("tests/webhook/admission/front/test_limits.py", 0),
        ("tests/webhook/admission/test_metrics_documented.py", 1),
        ("tests/webhook/admission/front/test_handover.py", 2),
        ("tests/webhook/admission/test_shared.py", 3),
    ],
)
def test_the_nearest_tests_of_a_module_are_its_own_then_those_that_import_it(file: str, distance: int) -> None:
    assert mutant_runs._distance(f"{file}::test", "webhook/admission/front/limits.py") == distance


def test_a_constant_is_tried_with_the_tests_of_its_module_however_many_others_are_quicker() -> None:
    files = sorted((mutants.ROOT / "tests" / "webhook" / "admission").glob("test_*.py"))[: mutant_runs._FILES]
    others = [f"{file.relative_to(mutants.ROOT)}::test" for file in files]
    own = "tests/webhook/admission/front/test_limits.py::test"
    found = mutant_runs._of_few_files([*others, own], "webhook/admission/front/limits.py")
    assert found == [*others[:-1], own]
