from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.catalog import CATALOG

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

NODE_CLASS = {policy.id for policy in CATALOG if policy.id.startswith("nodeclasses/")}
TAGS = "nodeclasses/missing-cost-tags"
SELECTIONS: dict[str, tuple[list[str], set[str]]] = {
    "one": (["--select", TAGS], {TAGS}),
    "a pattern": (["--select", "nodeclasses/*"], NODE_CLASS),
    "a pattern without one": (["--select", "nodeclasses/*", "--ignore", TAGS], NODE_CLASS - {TAGS}),
    "two with a comma": (["--select", f"{TAGS},pods/missing-gpu-toleration"], {TAGS, "pods/missing-gpu-toleration"}),
    "two flags": (["--select", TAGS, "--select", "pods/mig-without-claim"], {TAGS, "pods/mig-without-claim"}),
    "all but some": (["--ignore", "*/*"], set()),
}


@pytest.mark.parametrize(("flags", "remaining"), SELECTIONS.values(), ids=SELECTIONS)
def test_only_what_is_selected_is_in_force(
    flags: list[str], remaining: set[str], gpugate: Run, manifests: Path
) -> None:
    ran = gpugate("check", "-o", "json", *flags, manifests)

    document = json.loads(ran.out)
    assert {finding["policy"] for finding in document["findings"]} - {None} <= remaining
    assert document["summary"]["policies"] <= len(remaining)


def test_a_selection_does_not_hide_a_mistake_in_the_policy_file(gpugate: Run, manifests: Path, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("apiVersion: gpugate.dev/v1\nkind: PolicyConfig\npolicies: {pods/none: {mode: warn}}\n")

    ran = gpugate("check", "-p", file, "--select", TAGS, manifests)

    assert (ran.code, "unknown policy `pods/none`" in ran.err) == (2, True)


UNKNOWN = {
    "a slip": ("nodeclasses/missing-cost-tag", f"did you mean {TAGS}?"),
    "nothing like it": ("zzz", "`gpugate policies` lists them"),
}


@pytest.mark.parametrize("flag", ["--select", "--ignore"])
@pytest.mark.parametrize(("name", "remedy"), UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_policy_is_wrong_usage(flag: str, name: str, remedy: str, gpugate: Run) -> None:
    ran = gpugate("check", flag, name)

    assert (ran.code, ran.err) == (2, f"error: {flag} {name}: unknown policy; {remedy}\n")
