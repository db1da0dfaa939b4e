from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import Known, Need
from gpugate.policies.sdk.findings import Patch, Skip, Stance, Violation
from gpugate.policies.sdk.objects import NAMESPACE, POD
from gpugate.policies.sdk.policy import AnyContext, Policy, mutates, validates
from gpugate.webhook.check.options import Options
from gpugate.webhook.check.run import CheckResult, check
from gpugate.webhook.manifests.inputs import expand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpugate.policies.sdk.field import Field

DOC = "Pod that {0}.\n\n## Why is this bad?\nIt {0}. And more.\n"


@validates(POD)
def _denied(pod: Field, _: AnyContext) -> Iterator[Violation]:
    if pod["metadata", "labels", "denied"]:
        yield Violation(pod["metadata", "labels", "denied"].path, "is denied", hint="remove the label")


@validates(POD, mode=Stance.WARN)
def _warned(pod: Field, _: AnyContext) -> Iterator[Violation]:
    if pod["metadata", "labels", "warned"]:
        yield Violation(pod["spec", "priority"].path, "is warned")


@mutates(POD)
def _patched(pod: Field, _: AnyContext) -> Iterator[Patch]:
    if pod["metadata", "labels", "patched"] and not pod["metadata", "annotations", "added"]:
        yield Patch("set", pod["metadata", "annotations", "added"].path, "yes", "adds an annotation")


@validates(POD, needs=(Need(NAMESPACE, ("metadata.name",)),))
def _blind(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    namespaces = ctx.facts.list(NAMESPACE)
    if not isinstance(namespaces, Known) or not namespaces.complete:
        yield Skip("needs all Namespace objects")
    elif not any(item["metadata", "name"].text == ctx.request.namespace for item in namespaces.items):
        yield Violation(pod["metadata", "namespace"].path, "its namespace does not exist")


@validates(POD)
def _broken(pod: Field, _: AnyContext) -> Iterator[Violation]:
    if pod["metadata", "labels", "broken"]:
        raise ZeroDivisionError
    yield from ()


def _policy(handler: Any) -> Policy:
    name = handler.run.__name__.strip("_")
    return Policy(f"pods/{name}", DOC.format(f"is {name}"), (handler,))


CATALOG = {policy.id: policy for policy in map(_policy, (_denied, _warned, _patched, _blind, _broken))}


@pytest.fixture
def catalog() -> dict[str, Policy]:
    return CATALOG


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., CheckResult]:
    """Check texts, each a file `1.yaml`, `2.yaml` and so on, against some policies made for these tests."""
    monkeypatch.chdir(tmp_path)

    def checked(
        *texts: str, policies: tuple[str, ...] = ("pods/denied", "pods/warned", "pods/patched"), **options: Any
    ) -> CheckResult:
        names = [f"{number}.yaml" for number in range(1, len(texts) + 1)]
        for name, text in zip(names, texts, strict=True):
            (tmp_path / name).write_text(text)
        ruleset = bind([CATALOG[name] for name in policies], PolicyConfig())
        return check(list(expand(names)), ruleset, Options(dt.date(2026, 1, 1), known=frozenset(CATALOG), **options))

    return checked
