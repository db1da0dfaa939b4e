from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.engine.config import Exemption, PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.check.options import Options
from gpugate.webhook.check.run import check
from gpugate.webhook.manifests.inputs import expand

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.report.located import Report

    Exempting = Callable[..., Report]

TODAY = dt.date(2026, 1, 1)
POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels: {denied: x}\n"


@pytest.fixture
def exempting(catalog: Mapping[str, Policy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Exempting:
    """Check a Pod under an exemption."""
    monkeypatch.chdir(tmp_path)

    def checked(text: str = POD, policy: str = "pods/denied", *, whole: bool = True, **exemption: Any) -> Report:
        (tmp_path / "pod.yaml").write_text(text)
        given = {"policies": ("pods/denied",), "reason": "r", "owner": "o", "expires": TODAY} | exemption
        ruleset = bind(catalog.values(), PolicyConfig(exemptions=(Exemption(**given),)), {policy})
        options = Options(TODAY, known=frozenset(catalog), whole=whole)
        return check(list(expand(["pod.yaml"])), ruleset, options).report

    return checked


def test_one_that_lets_something_off_is_of_use(exempting: Exempting) -> None:
    report = exempting()

    assert (report.expired, report.unused) == ((), ())


def test_one_that_is_over_is_told(exempting: Exempting) -> None:
    report = exempting(expires=TODAY - dt.timedelta(days=1))

    assert (report.expired, report.unused) == (("pods/denied: expired on 2025-12-31 (o: r)",), ())


def test_one_that_matches_nothing_is_told(exempting: Exempting) -> None:
    report = exempting(names=("b",))

    assert (report.expired, report.unused) == ((), ("pods/denied for names b: applies to no finding (o: r)",))


OPEN = {
    "a part of the placeholder": ("${gpu_pool}-a", "*gpu*", False),
    "as many characters": ("$AB-a", "???-a", False),
    "a set of characters": ("${A}-a", "[$]*", False),
    "the placeholder itself": ("{{ .gpu }}-a", "{{ .gpu }}-a", False),
    "the part that is written": ("{{ .gpu }}-a", "*-a", True),
    "any name": ("<NAME>", "*", True),
}


@pytest.mark.parametrize("key", ["name", "namespace"])
@pytest.mark.parametrize(("written", "pattern", "is_exempt"), OPEN.values(), ids=OPEN)
def test_a_name_with_a_placeholder_matches_only_what_holds_for_all_that_it_becomes(
    written: str, pattern: str, key: str, *, is_exempt: bool, exempting: Exempting
) -> None:
    pod = POD.replace("name: a\n", "name: a\n  namespace: b\n").replace(
        f"{key}: {'a' if key == 'name' else 'b'}\n", f'{key}: "{written}"\n', 1
    )

    report = exempting(pod, **{f"{key}s": (pattern,)})

    (finding,) = report.findings
    assert (finding.exempt, getattr(finding.object, key)) == (is_exempt, written)


UNCERTAIN: dict[str, dict[str, Any]] = {
    "only some files were named": {"names": ("b",), "whole": False},
    "its policy is not in force": {"policy": "pods/warned"},
    "its policy could not look": {"policy": "pods/blind", "policies": ("pods/blind",)},
    "something cannot be read": {"text": f"{POD}---\na: b: c\n", "names": ("b",)},
    "it is for some users": {"users": ("jane",)},
}


@pytest.mark.parametrize("arguments", UNCERTAIN.values(), ids=UNCERTAIN)
def test_nothing_is_told_that_is_not_certain(arguments: dict[str, Any], exempting: Exempting) -> None:
    assert exempting(**arguments).unused == ()
