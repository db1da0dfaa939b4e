from __future__ import annotations

import re

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.tools.__main__ import generated
from gpugate.tools.policy_page import policy_page
from gpugate.webhook.report.policy_text import parameters

PAGES = {policy.id: policy_page(policy) for policy in CATALOG}


@pytest.mark.parametrize("policy", PAGES)
def test_a_page_opens_with_a_bad_and_an_allowed_example(policy: str) -> None:
    lines = PAGES[policy].splitlines()
    headings = [
        line
        for line in lines
        if line.startswith("## ") and not line.startswith(("## Parameters", "## Observed", "## More "))
    ]
    assert headings[0] in {"## Denied", "## Reported", "## Mutated"}
    assert headings[1:] == ["## Allowed", "## Why is this bad?", "## Instead", "## Sources"]


@pytest.mark.parametrize(
    ("policy", "outcome"),
    [
        pytest.param("nodepools/missing-gpu-limit", "Denied", id="enforce"),
        pytest.param("pods/training-on-spot", "Reported", id="warn"),
        pytest.param("pods/missing-gpu-toleration", "Mutated", id="mutates only"),
    ],
)
def test_the_first_heading_is_what_the_default_mode_does(policy: str, outcome: str) -> None:
    assert f"\n## {outcome}\n" in PAGES[policy]
    assert "\n## More examples with findings\n" in PAGES[policy]


def test_the_first_examples_differ_in_what_the_policy_is_about() -> None:
    opening = PAGES["nodepools/missing-gpu-limit"].partition("## Why is this bad?")[0]
    denied, allowed = (part.splitlines() for part in opening.partition("## Denied")[2].split("## Allowed"))
    assert {line.partition("  #")[0] for line in allowed if line.startswith(" ")} - {
        line.partition("  #")[0] for line in denied
    } == {'  limits: {nodes: "4"}'}


def test_a_page_can_open_with_typical_examples_in_place_of_those_that_differ_least() -> None:
    captions = [line for line in PAGES["pods/missing-gpu-toleration"].splitlines() if line.endswith(".")]
    assert captions[1:3] == [
        "A Pod that requests a GPU and has no toleration.",
        "A Deployment whose Pods tolerate the taint.",
    ]


@pytest.mark.parametrize("policy", PAGES)
def test_the_first_examples_are_expanded_and_all_others_folded(policy: str) -> None:
    opening = PAGES[policy].partition("## Why is this bad?")[0]
    more = PAGES[policy].partition("## More ")[2].partition("## Sources")[0]
    assert ("<details>" in opening, opening.count("```yaml\n")) == (False, 2)
    assert more.count("```yaml\n") == more.count("<details>")


@pytest.mark.parametrize("policy", CATALOG, ids=lambda policy: policy.id)
def test_every_parameter_has_a_meaning(policy: object) -> None:
    found = parameters(policy.params)  # type: ignore[attr-defined]  # the catalogue holds policies
    assert [parameter.name for parameter in found if not parameter.meaning] == []


def test_a_mutation_is_shown_as_a_difference() -> None:
    page = PAGES["pods/missing-gpu-toleration"]
    assert "```diff\n@@ -19,3 +19,7 @@\n" in page
    assert "\n+  tolerations:\n+    - key: nvidia.com/gpu\n" in page


def test_a_difference_leaves_out_the_context_of_its_example() -> None:
    marked = re.compile(r"^[-+ ]# (complete )?context$", re.MULTILINE)
    assert [policy for policy, page in PAGES.items() if marked.search(page)] == []
    assert "\n-  maxUnavailable: 0\n+  maxUnavailable: 1\n" in PAGES["disruption/blocking-pdb"]


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
