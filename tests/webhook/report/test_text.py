from __future__ import annotations

from dataclasses import replace

import pytest

from gpugate.policies.sdk.findings import Patch, Patches, Replacement, Stance
from gpugate.webhook.manifests.problems import Passing
from gpugate.webhook.report import text
from gpugate.webhook.report.located import (
    Located,
    Location,
    ObjectName,
    PassedOver,
    Report,
    Severity,
    Skipped,
    Sort,
    Suppressed,
)
from gpugate.webhook.report.plain import Paint
from gpugate.webhook.report.view import View
from gpugate.webhook.report.words import BY_CONVENTION

POOL = ObjectName("karpenter.sh/v1", "NodePool", "", "gpu")
EXCERPT = ("spec:", "  disruption:", "    consolidationPolicy: WhenEmptyOrUnderutilized")
PLACE = Location("pools/gpu.yaml", 100, 26, 50, EXCERPT, 98)
DENIAL = Located(
    Sort.VIOLATION,
    Severity.ERROR,
    "may evict running GPU work",
    PLACE,
    policy="nodepools/hasty-consolidation",
    object=POOL,
    path="spec.disruption.consolidationPolicy",
    stance=Stance.ENFORCE,
    why="It replaces nodes that still run Pods.",
    hint="write WhenEmpty",
    fix=Patches((Patch("set", ("spec", "disruption", "consolidationPolicy"), "WhenEmpty", "waits"),)),
)


def lines(finding: Located) -> list[str]:
    return text.write(Report((finding,)), view=View(quiet=True)).splitlines()


def test_a_finding_about_names_of_the_platform_says_why_it_is_a_note() -> None:
    note = replace(DENIAL, severity=Severity.NOTE, stance=Stance.WARN, convention=True)

    assert [line.partition("= ")[2] for line in lines(note)[-3:-1]] == [
        f"severity: {BY_CONVENTION}",
        "at admission: would be allowed with a warning (warn)",
    ]


def test_a_finding_shows_the_line_the_cause_and_the_fix() -> None:
    assert lines(DENIAL) == [
        "error[nodepools/hasty-consolidation]: may evict running GPU work",
        "   --> pools/gpu.yaml:100:26   NodePool/gpu",
        "    |",
        " 98 | spec:",
        " 99 |   disruption:",
        "100 |     consolidationPolicy: WhenEmptyOrUnderutilized",
        "    |                          ^^^^^^^^^^^^^^^^^^^^^^^^",
        "    |",
        "    = field: spec.disruption.consolidationPolicy",
        "    = why: It replaces nodes that still run Pods.",
        "    = fix: write WhenEmpty",
        "    =      set spec.disruption.consolidationPolicy: WhenEmpty",
        "    = at admission: would be DENIED (enforce)",
        "    = docs: gpugate explain nodepools/hasty-consolidation",
    ]


def test_with_an_address_of_the_site_a_finding_links_to_its_page() -> None:
    shown = text.write(Report((DENIAL,)), view=View(quiet=True, docs="https://docs.example.com/gpugate/"))

    page = "https://docs.example.com/gpugate/docs/policies/nodepools/hasty-consolidation.html"
    assert shown.splitlines()[-1] == f"    = docs: {page}"


@pytest.mark.parametrize(
    ("view", "listed"),
    [
        pytest.param(
            View(),
            ["= and: b.yaml:1:1", "=      b.yaml:2:1", "=      b.yaml:3:1", "=      and 2 more; -v lists them"],
            id="the first places",
        ),
        pytest.param(
            View(verbose=True),
            ["= and: b.yaml:1:1", *(f"=      b.yaml:{line}:1" for line in (2, 3, 4, 5))],
            id="verbose: all places",
        ),
    ],
)
def test_further_places_of_a_cause_are_listed(view: View, listed: list[str]) -> None:
    related = tuple(replace(DENIAL, location=Location("b.yaml", line, 1), object=None) for line in range(1, 6))

    shown = text.write(Report((replace(DENIAL, related=related),)), view=view).splitlines()

    first = next(number for number, line in enumerate(shown) if "= and:" in line)
    assert [line.strip() for line in shown[first : first + len(listed)]] == listed
    assert "b.yaml" not in shown[first + len(listed)]


CONSEQUENCES = {
    "denial": (DENIAL, "would be DENIED (enforce)"),
    "denial in a template": (replace(DENIAL, template_of="Job"), "Pods of this Job would be DENIED (enforce)"),
    "warning": (replace(DENIAL, stance=Stance.WARN), "would be allowed with a warning (warn)"),
    "warning in a template": (
        replace(DENIAL, stance=Stance.WARN, template_of="Job"),
        "would be allowed with a warning (warn)",
    ),
    "recorded": (replace(DENIAL, stance=Stance.AUDIT), "would be allowed and recorded (audit)"),
    "patch": (replace(DENIAL, sort=Sort.PATCH), "would be MUTATED (enforce)"),
    "patch of a template": (
        replace(DENIAL, sort=Sort.PATCH, template_of="Job"),
        "Pods of this Job would be MUTATED (enforce)",
    ),
    "patch that is only told": (
        replace(DENIAL, sort=Sort.PATCH, stance=Stance.WARN),
        "would be allowed with a warning (warn)",
    ),
    "wrong type": (
        replace(DENIAL, sort=Sort.MALFORMED, stance=None),
        "would be DENIED (the API server refuses it too)",
    ),
}


@pytest.mark.parametrize(("finding", "words"), CONSEQUENCES.values(), ids=CONSEQUENCES)
def test_the_consequence_is_said_in_words(finding: Located, words: str) -> None:
    assert f"    = at admission: {words}" in lines(finding)


def test_a_file_as_a_whole_has_no_frame() -> None:
    finding = Located(Sort.UNREADABLE, Severity.ERROR, "no such file", Location("a.yaml"), hint="check the spelling")

    assert lines(finding) == ["error[unreadable]: no such file", " --> a.yaml", "  = fix: check the spelling"]


def test_a_replacement_is_written_out() -> None:
    objects: tuple[dict[str, object], ...] = ({"kind": "A", "spec": {"list": ["x"]}}, {"kind": "B"})
    finding = replace(DENIAL, hint="", fix=Replacement(objects))  # type: ignore[arg-type] # JSON in a table

    shown = lines(finding)

    start = shown.index("    = fix: write this instead:")
    assert shown[start + 1 : start + 7] == [
        "    =        kind: A",
        "    =        spec:",
        "    =          list:",
        "    =            - x",
        "    =      ---",
        "    =        kind: B",
    ]


def test_text_from_a_file_cannot_drive_the_terminal() -> None:
    place = Location("\x1b[31m.yaml", 1, 2, 3, ("\tname: \x1b]0;owned\x07",), 1)
    finding = Located(Sort.VIOLATION, Severity.ERROR, "a\x1b[2Jb\nc", place)

    assert lines(finding) == [
        "error[violation]: a\ufffd[2Jb\ufffdc",
        " --> \ufffd[31m.yaml:1:2",
        "  |",
        "1 |  name: \ufffd]0;owned\ufffd",
        "  |  ^",
        "  |",
    ]


def test_a_very_long_line_is_cut() -> None:
    place = Location("min.json", 1, 900, 905, ("x" * 1000,), 1)

    assert lines(replace(DENIAL, location=place))[3:5] == [f"1 | {'x' * 237}...", "  |"]


def test_colours_are_codes_around_the_same_text() -> None:
    report = Report((DENIAL,))

    painted = text.write(report, Paint(enabled=True), view=View(quiet=True))

    assert painted.startswith("\x1b[1;31merror[nodepools/hasty-consolidation]\x1b[0m: \x1b[1mmay evict")


def test_the_summary_says_what_was_not_looked_at() -> None:
    lost = Located(Sort.UNREADABLE, Severity.ERROR, "no such file", Location("a.yaml"))
    skipped = (Skipped("a/b", "needs Jobs", 1), Skipped("a/b", "needs Pods", 2), Skipped("a/c", "needs Jobs", 1))
    left_out = ("chart/templates: Helm templates",)
    report = Report((lost,), skipped, 1234, 1, 10, 2, ("an object",), "Kubernetes 1.36", 4, left_out=left_out)

    assert text.write(report, view=View(seconds=0.114)).splitlines()[3:] == [
        "Checked 1,234 objects in 1 file against 10 policies for Kubernetes 1.36 in 0.11 s: 1 error, 0 warnings, 0 notes",
        "1 part could not be read and was not evaluated",
        "2 policies were not evaluated on some objects:",
        "  a/b: needs Jobs (1 object)",
        "  a/b: needs Pods (2 objects)",
        "  a/c: needs Jobs (1 object)",
        "an object",
        "Passed over 2 parts",
        "  chart/templates: Helm templates",
    ]


def test_the_summary_counts_the_yaml_files_in_hidden_directories() -> None:
    assert "Passed over 2 YAML files in hidden directories; name such a directory to read it" in text.write(
        Report((), objects=1, files=1, hidden=2)
    )


PASSED = (
    PassedOver(".github", 0, Passing.HIDDEN, 3, "a hidden directory"),
    PassedOver("mkdocs.yml", 1, Passing.NON_MANIFEST),
    PassedOver("pool.yaml", 4, Passing.TEMPLATE),
    PassedOver("pool.yaml", 9, Passing.TEMPLATE),
    PassedOver("kube.yaml", 1, Passing.TOOL_FILE, detail="a kubeconfig"),
)


def test_the_summary_counts_what_was_passed_over_by_reason() -> None:
    shown = text.write(Report((), objects=1, files=3, passed_over=4, hidden=3, passed=PASSED)).splitlines()

    assert "Passed over 4 parts: 1 non-manifest, 2 templates, 1 tool file; --show-skipped lists them" in shown


def test_what_was_passed_over_is_listed_on_request() -> None:
    shown = text.write(
        Report((), objects=1, passed_over=4, hidden=3, passed=PASSED), view=View(quiet=True, skipped=True)
    )

    assert shown.splitlines() == [
        "passed over[hidden-directory]: .github (3 YAML files)",
        "passed over[non-manifest]: mkdocs.yml:1",
        "passed over[template]: pool.yaml:4",
        "passed over[template]: pool.yaml:9",
        "passed over[tool-file]: kube.yaml:1: a kubeconfig",
    ]


def test_a_run_without_objects_says_so() -> None:
    assert text.write(Report((), files=2)).splitlines() == [
        "Checked 0 objects in 2 files against 0 policies: 0 errors, 0 warnings, 0 notes",
        "Nothing was checked: exit code 3",
    ]


def test_quiet_and_nothing_found_is_nothing() -> None:
    assert text.write(Report(()), view=View(quiet=True)) == ""


FIX = Patches((Patch("set", ("spec",), 1, ""),))
SAFE = replace(DENIAL, fix=replace(FIX, safe=True))
UNSAFE = replace(DENIAL, fix=FIX)
FIXABLE = {
    "safe and unsafe": (
        (SAFE, UNSAFE, UNSAFE),
        ["1 finding can be fixed with --fix, 2 more with --fix --unsafe-fixes"],
    ),
    "unsafe": ((UNSAFE,), ["1 finding can be fixed with --fix --unsafe-fixes"]),
    "a patch": ((replace(DENIAL, fix=None, patches=FIX.patches),), ["1 finding can be fixed with --fix"]),
    "exempt": ((replace(SAFE, stance=Stance.AUDIT, note="exempt until 2030-01-01: agreed"),), []),
    "without a fix": ((replace(DENIAL, fix=None),), []),
}


@pytest.mark.parametrize(("findings", "said"), FIXABLE.values(), ids=FIXABLE)
def test_the_summary_says_what_can_be_fixed(findings: tuple[Located, ...], said: list[str]) -> None:
    assert [line for line in text.write(Report(findings, objects=1)).splitlines() if "can be fixed" in line] == said


def test_the_summary_says_what_was_done_and_what_was_let_pass() -> None:
    report = Report((), objects=1, suppressed=(Suppressed(DENIAL, "agreed"),), fixed=2, unfixed=("a.yaml:1: left",))

    assert text.write(report).splitlines() == [
        "Checked 1 object in 0 files against 0 policies: 0 errors, 0 warnings, 0 notes, 1 suppressed",
        "Made 2 changes",
        "  a.yaml:1: left",
    ]
