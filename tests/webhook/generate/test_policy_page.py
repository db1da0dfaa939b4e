from __future__ import annotations

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.generate.__main__ import generated
from gpugate.webhook.generate.policy_page import policy_page
from gpugate.webhook.report.policy_params import parameters

PAGES = {policy.id: policy_page(policy) for policy in CATALOG}


@pytest.mark.parametrize("policy", PAGES)
def test_a_page_says_why_what_instead_what_is_found_what_is_not_and_from_where(policy: str) -> None:
    sometimes = {"## Parameters", "## Seen happening"}
    headings = [line for line in PAGES[policy].splitlines() if line.startswith("## ") and line not in sometimes]
    assert headings == ["## Why is this bad?", "## Instead", "## Found", "## Not found", "## Sources"]


@pytest.mark.parametrize("policy", CATALOG, ids=lambda policy: policy.id)
def test_every_parameter_has_a_meaning(policy: object) -> None:
    found = parameters(policy.params)  # type: ignore[attr-defined]  # the catalogue holds policies
    assert [parameter.name for parameter in found if not parameter.meaning] == []


def test_a_mutation_is_shown_as_a_difference() -> None:
    page = PAGES["pods/missing-gpu-toleration"]
    assert "```diff\n@@ -19,3 +19,7 @@\n" in page
    assert "\n+  tolerations:\n+    - key: nvidia.com/gpu\n" in page


def test_every_policy_has_a_page_and_stands_in_the_index() -> None:
    wanted = generated()
    pages = {
        path.with_suffix("").relative_to(path.parents[1]).as_posix()
        for path in wanted
        if path.suffix == ".md" and "policies" in path.parts[-3:-2]
    }
    index = next(text for path, text in wanted.items() if path.name == "README.md")
    assert pages == set(PAGES)
    assert all(f"(../docs/policies/{policy}.md)" in index for policy in PAGES)
