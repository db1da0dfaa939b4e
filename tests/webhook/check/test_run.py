from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.check.options import FailOn
from gpugate.webhook.report.located import Severity, Skipped, Sort

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.check.run import CheckResult

    Run = Callable[..., CheckResult]

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: a
  labels: {{{}: x}}
"""
GOOD, DENIED, WARNED, PATCHED, BROKEN = (POD.format(x) for x in ("good", "denied", "warned", "patched", "broken"))
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a
spec:
  template:
    metadata:
      labels: {{{}: x}}
"""
MALFORMED = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  containers: 3\n"
NOT_YAML = "a: b: c\n"
REPEATED = f"{GOOD}kind: Pod\n"
NOTHING = "# nothing\n"

EXIT_CODES: dict[str, tuple[tuple[str, ...], FailOn, int]] = {
    "nothing wrong": ((GOOD,), FailOn.DENY, 0),
    "a denial": ((GOOD, DENIED), FailOn.DENY, 1),
    "a denial in a template": ((DEPLOYMENT.format("denied"),), FailOn.DENY, 1),
    "a field of the wrong type": ((MALFORMED,), FailOn.DENY, 1),
    "a warning": ((WARNED,), FailOn.DENY, 0),
    "a warning that counts": ((WARNED,), FailOn.WARN, 1),
    "a patch": ((PATCHED,), FailOn.DENY, 0),
    "a warning is less than a patch": ((WARNED,), FailOn.MUTATE, 0),
    "a patch is less than a denial": ((PATCHED,), FailOn.MUTATE, 1),
    "a denial with a lower threshold": ((DENIED,), FailOn.MUTATE, 1),
    "a denial that never counts": ((DENIED,), FailOn.NEVER, 0),
    "a field of the wrong type that never counts": ((MALFORMED,), FailOn.NEVER, 0),
    "something unreadable, where a denial never counts": ((DENIED, NOT_YAML), FailOn.NEVER, 4),
    "nothing to check, where a denial never counts": ((NOTHING,), FailOn.NEVER, 3),
    "a patch that counts": ((PATCHED,), FailOn.WARN, 1),
    "a patch of a template that counts": ((DEPLOYMENT.format("patched"),), FailOn.WARN, 1),
    "a repeated key": ((REPEATED,), FailOn.DENY, 0),
    "a repeated key is a warning": ((REPEATED,), FailOn.MUTATE, 0),
    "a repeated key that counts": ((REPEATED,), FailOn.WARN, 1),
    "nothing to check": ((NOTHING,), FailOn.DENY, 3),
    "something unreadable": ((GOOD, NOT_YAML), FailOn.DENY, 4),
    "a broken policy": ((BROKEN,), FailOn.DENY, 4),
    "a denial beats something unreadable": ((NOT_YAML, DENIED), FailOn.DENY, 1),
    "something unreadable beats nothing to check": ((NOT_YAML, NOTHING), FailOn.DENY, 4),
}
EVERY = ("pods/denied", "pods/warned", "pods/patched", "pods/broken")


@pytest.mark.parametrize(("texts", "fail_on", "code"), EXIT_CODES.values(), ids=EXIT_CODES)
def test_the_exit_code_says_the_worst_that_was_found(texts: Any, fail_on: FailOn, code: int, run: Run) -> None:
    assert run(*texts, policies=EVERY, fail_on=fail_on).exit_code == code


FINDINGS = {
    "a denial": (DENIED, (Sort.VIOLATION, Severity.ERROR, "pods/denied", "1.yaml", 5, 20)),
    "a warning at its nearest field": (WARNED, (Sort.VIOLATION, Severity.WARNING, "pods/warned", "1.yaml", 1, 1)),
    "a patch": (PATCHED, (Sort.PATCH, Severity.NOTE, "pods/patched", "1.yaml", 3, 1)),
    "a field of the wrong type": (MALFORMED, (Sort.MALFORMED, Severity.ERROR, "", "1.yaml", 6, 15)),
    "a broken policy": (BROKEN, (Sort.BROKE, Severity.ERROR, "pods/broken", "1.yaml", 1, 1)),
    "something unreadable": (NOT_YAML, (Sort.UNREADABLE, Severity.ERROR, "", "1.yaml", 1, 5)),
    "a repeated key": (REPEATED, (Sort.AMBIGUOUS, Severity.WARNING, "", "1.yaml", 6, 1)),
}


@pytest.mark.parametrize(("text", "expected"), FINDINGS.values(), ids=FINDINGS)
def test_what_is_found_has_sort_severity_and_place(text: str, expected: object, run: Run) -> None:
    (found,) = run(text, policies=EVERY).report.findings

    place = found.location
    assert (found.sort, found.severity, found.policy, place.file, place.line, place.column) == expected


def test_findings_stand_in_the_order_of_files_and_lines(run: Run) -> None:
    result = run(f"{DENIED}---\n{NOT_YAML}---\n{WARNED}", NOT_YAML, DENIED)

    assert [(f.location.file, f.location.line) for f in result.report.findings] == [
        ("1.yaml", 5),
        ("1.yaml", 7),
        ("1.yaml", 9),
        ("2.yaml", 1),
        ("3.yaml", 5),
    ]


def test_a_finding_in_a_template_names_the_workload(run: Run) -> None:
    (found,) = run(DEPLOYMENT.format("denied")).report.findings

    assert (found.path, found.template_of, found.location.line) == (
        "spec.template.metadata.labels.denied",
        "Deployment",
        8,
    )


def test_a_finding_in_a_list_is_placed_in_its_item(run: Run) -> None:
    items = "".join(f"  {line}\n" for line in DENIED.splitlines())
    (found,) = run(f"apiVersion: v1\nkind: List\nitems:\n-{items[1:]}").report.findings

    assert (found.path, found.location.line) == ("metadata.labels.denied", 8)


def test_a_policy_that_breaks_leaves_the_others(run: Run) -> None:
    text = POD.format("denied: x, broken")

    found = {finding.policy for finding in run(text, policies=EVERY).report.findings}

    assert found == {"pods/broken", "pods/denied"}


def test_a_policy_that_cannot_look_is_counted(run: Run) -> None:
    report = run(GOOD, DENIED, policies=("pods/blind",)).report

    assert (report.skipped, report.findings) == ((Skipped("pods/blind", "needs all Namespace objects", 2),), ())


def test_with_complete_context_what_is_missing_is_missing(run: Run) -> None:
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: default\n"
    elsewhere = GOOD.replace("name: a", "name: a\n  namespace: ml")

    report = run(namespace, GOOD, elsewhere, policies=("pods/blind",), complete_context=True).report

    assert [(f.location.file, f.message) for f in report.findings] == [("3.yaml", "its namespace does not exist")]


INSTALLERS = {
    "an Application": """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: operator}
spec: {source: {repoURL: https://helm.ngc.nvidia.com/nvidia, chart: gpu-operator, targetRevision: v26.7.0}}
""",
    "a HelmRelease": """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: operator, namespace: flux-system}
spec: {chart: {spec: {chart: gpu-operator}}}
""",
}
# Its manifests are files of a repository, and no chart.
OF_FILES = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: pools}
spec: {source: {repoURL: https://git.example.com/platform, path: pools}}
"""


@pytest.mark.parametrize("installer", INSTALLERS.values(), ids=INSTALLERS)
def test_beside_an_installed_chart_the_files_are_never_complete(run: Run, installer: str) -> None:
    report = run(GOOD, installer, policies=("pods/blind",), complete_context=True).report

    assert (report.skipped, report.findings) == ((Skipped("pods/blind", "needs all Namespace objects", 1),), ())
    assert [remark for remark in report.remarks if remark.startswith("--complete-context has no effect: ")]


def test_files_of_an_application_may_be_complete(run: Run) -> None:
    report = run(GOOD, OF_FILES, policies=("pods/blind",), complete_context=True).report

    assert [finding.message for finding in report.findings] == ["its namespace does not exist"]
    assert report.remarks == ()


def test_without_the_flag_there_is_nothing_to_remark(run: Run) -> None:
    assert run(GOOD, *INSTALLERS.values()).report.remarks == ()


def test_an_object_that_occurs_twice_is_judged_twice_and_told(run: Run) -> None:
    report = run(DENIED, f"{DENIED}---\n{GOOD.replace('name: a', 'name: b')}").report

    assert [finding.location.file for finding in report.findings] == ["1.yaml", "2.yaml"]
    assert report.remarks == ("1 object is defined more than once, and each definition was evaluated: Pod/default/a",)


def test_several_objects_that_occur_twice_are_one_remark(run: Run) -> None:
    both = f"{DENIED}---\n{GOOD.replace('name: a', 'name: b')}"

    (remark,) = run(both, both).report.remarks

    assert remark == "2 objects are defined more than once, and each definition was evaluated: Pod/default/a and 1 more"


def test_the_report_counts_what_was_looked_at(run: Run) -> None:
    other = DENIED.replace("name: a", "name: b")
    report = run(f"{GOOD}---\n{other}", "{apiVersion: kustomize.config.k8s.io/v1, kind: Kustomization}").report

    assert (report.objects, report.files, report.policies, report.passed_over) == (2, 2, 3, 1)
    assert report.left_out == ("2.yaml: a kustomization: check what `kustomize build` makes of it",)
