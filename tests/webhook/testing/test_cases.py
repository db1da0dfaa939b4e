from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.testing.cases import Case, CaseFileError, read_case_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Read = Callable[[str], tuple[Case, ...]]

TWO = """\
    # A comment.
    tests:
      - name: first
        object: pod.yaml
        expect: {allow: true}
      - object: pod.yaml
        name: second
        expect: {allow: true}
    """


def test_each_test_has_its_name_and_the_line_on_which_it_begins(cases: Read) -> None:
    assert [(case.name, case.file, case.line) for case in cases(TWO)] == [
        ("first", "x.gpugate-test.yaml", 3),
        ("second", "x.gpugate-test.yaml", 6),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "x.gpugate-test.yaml: holds 0 documents: write one, with `tests:` in it"),
        ("- a\n", "x.gpugate-test.yaml:1:1: not a case file: write `tests:`"),
        ("test:\n  - name: a\n", "x.gpugate-test.yaml:1:1: unknown key test; did you mean `tests`?"),
        ("tests: []\n", "x.gpugate-test.yaml:1:8: no tests"),
        (
            "tests: [{name: a}]\ndefaults: {contxt: []}\n",
            ":2:20: defaults.contxt: unknown key; did you mean `context`?",
        ),
        ("tests: [\n", "x.gpugate-test.yaml:2:1: not YAML"),
        ("tests: []\n---\ntests: []\n", "holds 2 documents"),
    ],
)
def test_a_file_that_is_none_is_refused(folder: Path, text: str, says: str) -> None:
    (folder / "x.gpugate-test.yaml").write_text(text)
    with pytest.raises(CaseFileError) as raised:
        read_case_file("x.gpugate-test.yaml")
    assert says in str(raised.value)


def test_a_file_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(CaseFileError, match=r"no.gpugate-test.yaml: no such file"):
        read_case_file(folder / "no.gpugate-test.yaml")


def test_a_file_that_nobody_has_written_by_hand_is_refused(folder: Path) -> None:
    file = folder / "x.gpugate-test.yaml"
    file.write_bytes(b"tests: [" + b"1," * 3 * 2**20 + b"]")
    with pytest.raises(CaseFileError, match="larger than 4 MiB"):
        read_case_file(file)


@pytest.mark.parametrize(
    ("test", "says"),
    [
        ("{name: a, objct: pod.yaml, expect: {}}", ":3:22: objct: unknown key; did you mean `object`?"),
        ("{name: a, object: pod.yaml, expect: {dney: []}}", ":3:48: expect.dney: unknown key; did you mean `deny`?"),
        ("{name: a, object: pod.yaml}", ":3:5: missing `expect`, which is required"),
        ("{object: pod.yaml, expect: {}}", ":3:5: missing `name`, which is required"),
        ("a text", ":3:5: a test is an object"),
        ("{name: a, object: pod.yaml, expect: {}, parametrize: 3}", "parametrize: must be lists of values by name"),
        ("{name: a, object: pod.yaml, expect: {}, parametrize: {ct: []}}", "parametrize.ct: must be a list of values"),
        ("{name: a, object: pod.yaml, expect: {at: {pods/x: {lin: 3}}}}", "unknown key; did you mean `line`?"),
        ("{name: a, object: pod.yaml, expect: {}, target: {kubernetes: v1}}", "target.kubernetes: expected `str`"),
    ],
)
def test_a_mistake_in_one_test_is_said_when_it_is_run_and_the_others_stay(cases: Read, test: str, says: str) -> None:
    text = f"tests:\n  - {{name: fine, object: pod.yaml, expect: {{}}}}\n  - {test}\n"
    fine, wrong = cases(text)
    assert not isinstance(fine.definition, CaseFileError)
    assert isinstance(wrong.definition, CaseFileError)
    assert says in str(wrong.definition)


def test_two_tests_of_one_name_are_told_apart(cases: Read) -> None:
    first, second = cases(TWO.replace("second", "first"))
    assert (first.name, second.name) == ("first", "first (line 6)")
    assert "a test on line 3 is called 'first' too" in str(second.definition)


def test_a_test_takes_from_the_defaults_what_it_does_not_say(cases: Read) -> None:
    (case,) = cases(
        """\
        defaults:
          policy_file: policy.yaml
          context: [a.yaml]
          request: {user: alice, dry_run: true}
          today: 2026-11-21
        tests:
          - name: a
            object: pod.yaml
            config: {mode: warn}
            context: [b.yaml]
            request: {user: bob}
            expect: {}
        """
    )
    definition = case.definition
    assert not isinstance(definition, CaseFileError)
    assert definition.policy_file is None
    assert definition.context == ("a.yaml", "b.yaml")
    assert (definition.request.user, definition.request.dry_run) == ("bob", True)
    assert str(definition.today) == "2026-11-21"


def test_parameters_make_several_tests_of_one(cases: Read) -> None:
    found = cases(
        """\
        tests:
          - name: "{gpus} of {kind}"
            parametrize: {gpus: [1, 2], kind: [a]}
            object: "{kind}.yaml"
            expect: {at: {pods/x: {line: "{gpus}"}}}
        """
    )
    assert [case.name for case in found] == ["1 of a", "2 of a"]
    assert [case.line for case in found] == [2, 2]
    lines = [case.definition.expect.at["pods/x"].line for case in found]  # type: ignore[union-attr]
    assert lines == [1, 2]


def test_a_mistake_is_told_once_and_not_for_each_value(cases: Read) -> None:
    found = cases("tests: [{name: a, parametrize: {gpus: [1, 2, 3]}, object: pod.yaml, expect: {dney: []}}]\n")
    assert len(found) == 1
