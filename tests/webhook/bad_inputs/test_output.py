"""What the server must never send, asked for with objects made to get it; `ask` checks each answer in full."""

from __future__ import annotations

import re
import select
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTILE = "a\r\n\x1b[31m\u202e\u2028\x00\ufffe"
HIDDEN = {"name": "c", "image": "x", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
GPU = {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
NUMBERS = {f"k{number}": number for number in range(1000)}
META = {"name": "a", "namespace": "default"}


def pod(containers: Any, metadata: Any = None) -> Any:
    metadata = META | (metadata or {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(pod([GPU | {"resources": {"limits": {"nvidia.com/gpu": 1e308}}}]), id="largest-float"),
        pytest.param(pod([GPU | {"resources": {"limits": {"nvidia.com/gpu": -0.0}}}]), id="minus-zero"),
        pytest.param(pod([GPU | {"resources": {"limits": {"nvidia.com/gpu": 2**64}}}]), id="beyond-64-bits"),
        pytest.param(pod([GPU], {"annotations": {"karpenter.sh/do-not-disrupt": "\U0001f600" * 20}}), id="emoji"),
        pytest.param(pod([GPU], {"labels": nested(180)}), id="180-levels-of-labels"),
        pytest.param(pod([GPU | {"resources": nested(180)}]), id="180-levels-of-resources"),
        pytest.param(pod([HIDDEN | {"name": HOSTILE}]), id="control-characters-in-a-name"),
        pytest.param(pod([GPU], {"annotations": {"karpenter.sh/do-not-disrupt": HOSTILE}}), id="in-an-annotation"),
        pytest.param(pod([GPU | {"resources": {"limits": {HOSTILE: "x"}}}]), id="in-a-resource"),
        pytest.param(pod([GPU | {"resources": {"limits": {"k" * 9000: "v" * 9000}}}]), id="resource-of-9-KB"),
        pytest.param(pod([HIDDEN | {"name": "n" * 9000}]), id="name-of-9-KB"),
    ],
)
def test_whatever_comes_the_answer_is_one(
    ask: Callable[..., Any], review: Callable[..., Any], path: str, obj: Any
) -> None:
    ask(path, review(obj))


def test_130_many_denials_end_with_how_many_more(ask: Callable[..., Any], review: Callable[..., Any]) -> None:
    answer = ask("/validate", review(pod([GPU], {"labels": NUMBERS})))
    assert re.search(r"\nand 9\d\d more$", answer["status"]["message"]) is not None


def test_130_many_warnings_end_with_how_many_more(ask: Callable[..., Any], review: Callable[..., Any]) -> None:
    answer = ask("/mutate", review(pod([GPU], {"labels": NUMBERS})))
    assert (len(answer["warnings"]), answer["warnings"][-1]) == (20, "and 981 more warnings")


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_130_no_patch_for_a_deletion(ask: Callable[..., Any], review: Callable[..., Any], path: str) -> None:
    answer = ask(path, review(pod([GPU]), operation="DELETE", object=None, oldObject=pod([GPU])))
    assert (answer["allowed"], "patch" in answer) == (True, False)


def test_nothing_is_printed_after_the_server_is_ready(webhook: Any) -> None:
    assert select.select([webhook.process.stdout], [], [], 0)[0] == []
