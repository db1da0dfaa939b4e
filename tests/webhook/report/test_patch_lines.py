from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from gpugate.policies.sdk.findings import Patch
from gpugate.webhook.audit.formats.html.findings import Mark, patch_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

TOLERATIONS = ("spec", "tolerations")
LIMITS = ("spec", "containers", 1, "resources", "limits")

CASES = {
    "a new element": (
        [Patch("append", TOLERATIONS, {"key": "a", "operator": "Exists"}, "")],
        ["  spec:", "    tolerations:", "+     - key: a", "+       operator: Exists"],
    ),
    "a value at the top": ([Patch("set", ("replicas",), 2, "")], ["+ replicas: 2"]),
    "a value in an element": (
        [Patch("set", (*LIMITS, "nvidia.com/gpu"), "1", "")],
        [
            "  spec:",
            "    containers:",
            "      - # [1]",
            "        resources:",
            "          limits:",
            '+           nvidia.com/gpu: "1"',
        ],
    ),
    "what is shared is said once": (
        [Patch("set", ("spec", "a"), 1, ""), Patch("set", ("spec", "b"), {"c": [1]}, "")],
        ["  spec:", "+   a: 1", "+   b:", "+     c:", "+       - 1"],
    ),
    "a removal": (
        [Patch("remove", (*TOLERATIONS, 0), None, "")],
        ["  spec:", "    tolerations:", "-     # remove spec.tolerations[0]"],
    ),
    "a key that YAML would misread": (
        [Patch("set", ("on", "a: b"), "x\ny", "")],
        ['  "on":', "+   'a: b': |-", "+     x", "+     y"],
    ),
}


@pytest.mark.parametrize(("patches", "expected"), CASES.values(), ids=CASES)
def test_patches_are_lines_below_their_keys(patches: Sequence[Patch], expected: list[str]) -> None:
    assert [f"{mark.value} {line}" for mark, line in patch_lines(patches)] == expected


@pytest.mark.parametrize(("patches", "expected"), CASES.values(), ids=CASES)
def test_what_can_be_copied_is_yaml(patches: Sequence[Patch], expected: list[str]) -> None:
    text = "\n".join(line for mark, line in patch_lines(patches) if mark is not Mark.REMOVED)

    assert isinstance(yaml.safe_load(text), dict), expected
