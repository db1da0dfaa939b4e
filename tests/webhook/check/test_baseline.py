from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.check import baseline
from gpugate.webhook.check.options import FailOn
from gpugate.webhook.report.located import SuppressedBy

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.check.baseline import Baseline
    from gpugate.webhook.check.run import CheckResult
    from gpugate.webhook.report.located import Report

    Run = Callable[..., CheckResult]


def pod(name: str = "a", label: str = "denied", above: str = "") -> str:
    return f"{above}apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  labels:\n    {label}: x\n"


def recorded(run: Run, *texts: str) -> Baseline:
    return baseline.made_of("b.json", run(*texts).report.findings)


def hidden(run: Run, known: Baseline, *texts: str, **options: Any) -> Report:
    result = run(*texts, **options)
    return baseline.hidden(result.report, known, result.coverage)


SURVIVED = {
    "the same": (pod(),),
    "other lines": (pod(above="# a\n# b\n\n"),),
    "another file": (pod("b", label="x"), pod()),
}


@pytest.mark.parametrize("texts", SURVIVED.values(), ids=SURVIVED)
def test_a_known_finding_is_hidden_wherever_it_stands(texts: tuple[str, ...], run: Run) -> None:
    report = hidden(run, recorded(run, pod()), *texts)

    assert [(each.finding.policy, each.reason, each.by) for each in report.suppressed] == [
        ("pods/denied", "in b.json", SuppressedBy.BASELINE)
    ]
    assert [finding.policy for finding in report.findings] == []


NEW = {
    "of another object": pod("b"),
    "of another policy": pod(label="warned"),
    "in another namespace": pod().replace("name: a", "name: a\n  namespace: n"),
}


@pytest.mark.parametrize("text", NEW.values(), ids=NEW)
def test_another_finding_is_new(text: str, run: Run) -> None:
    report = hidden(run, recorded(run, pod()), text)

    assert (len(report.findings), report.suppressed) == (1, ())


def test_of_equal_findings_as_many_are_hidden_as_were_known(run: Run) -> None:
    known = recorded(run, pod(), pod())

    report = hidden(run, known, pod(), pod(), pod())

    assert list(known.counts.values()) == [2]
    assert (len(report.findings), len(report.suppressed)) == (1, 2)


def test_a_patch_is_hidden_too(run: Run) -> None:
    report = hidden(run, recorded(run, pod(label="patched")), pod(label="patched"))

    assert (report.findings, len(report.suppressed)) == ((), 1)


def test_what_a_schema_refuses_is_hidden_too(run: Run) -> None:
    text = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec: {templat: {}}\n"
    known = recorded(run, text)

    report = hidden(run, known, f"# moved\n{text}")

    assert {key.policy for key in known.counts} == {"schema"}
    assert report.findings == ()


NEVER_HIDDEN = {
    "what cannot be read": "a: b: c\n",
    "a policy that broke": pod(label="broken"),
    "a comment that is of no use": "# gpugate: ignore[pods/denied] agreed\n" + pod(label="x"),
}


@pytest.mark.parametrize("text", NEVER_HIDDEN.values(), ids=NEVER_HIDDEN)
def test_what_is_no_finding_of_a_policy_is_never_hidden(text: str, run: Run) -> None:
    result = run(text, policies=("pods/denied", "pods/broken"))

    assert result.report.findings
    assert baseline.made_of("b.json", result.report.findings).counts == {}


STALE: dict[str, tuple[str, dict[str, Any], tuple[int, int]]] = {
    "its object is all right": (pod(label="x"), {}, (1, 0)),
    "its object is gone": (pod("b", label="x"), {}, (0, 1)),
    "its object is not among the files that were named": (pod("b", label="x"), {"whole": False}, (0, 0)),
    "its policy is not in force": (pod(label="x"), {"policies": ("pods/warned",)}, (0, 0)),
    "something cannot be read": (f"{pod(label='x')}---\na: b: c\n", {}, (0, 0)),
    "it still matches": (pod(), {}, (0, 0)),
}


@pytest.mark.parametrize(("text", "options", "expected"), STALE.values(), ids=STALE)
def test_an_entry_that_matches_nothing_is_told_where_that_is_certain(
    text: str, options: dict[str, Any], expected: tuple[int, int], run: Run
) -> None:
    known = recorded(run, pod())

    use = hidden(run, known, text, **options).baseline

    assert use is not None
    assert (len(use.stale), len(use.unseen)) == expected
    assert len(baseline.pruned(known, use).counts) == 1 - sum(expected)


def test_pruning_keeps_as_many_as_still_match(run: Run) -> None:
    known = recorded(run, pod(), pod())

    use = hidden(run, known, pod()).baseline

    assert use is not None
    assert list(baseline.pruned(known, use).counts.values()) == [1]


def test_a_policy_that_could_not_look_leaves_its_entries(run: Run) -> None:
    blind = ("pods/blind",)
    known = baseline.made_of("b.json", run(pod(label="x"), policies=blind, complete_context=True).report.findings)

    use = hidden(run, known, pod(label="x"), policies=blind).baseline

    assert use is not None
    assert (len(known.counts), use.stale) == (1, ())


def test_a_hidden_finding_does_not_come_back_with_a_lower_threshold(run: Run) -> None:
    known = recorded(run, pod(label="warned"))

    assert hidden(run, known, pod(label="warned"), fail_on=FailOn.WARN).findings == ()
