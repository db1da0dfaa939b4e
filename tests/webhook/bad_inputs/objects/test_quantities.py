"""Amounts of GPUs in every spelling: a number, or a denial that says what is wrong; and names that are nearly a GPU's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

COSTS = {"team": "search", "cost-center": "cc-1234"}
NO_QUANTITY = "is not a quantity"


def pod(resources: Any, *, key: str = "nvidia.com/gpu", containers: str = "containers") -> Any:
    spec: Any = {"containers": [{"name": "main", "image": "x"}]}
    spec[containers] = [{"name": "c", "image": "x", "resources": resources}]
    if key:
        spec["tolerations"] = [{"key": key, "operator": "Exists", "effect": "NoSchedule"}]
    metadata = {"name": "a", "namespace": "default", "labels": COSTS}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    "amount",
    [
        pytest.param(1, id="1-number"),
        pytest.param("1", id="1"),
        pytest.param("1e0", id="1e0"),
        pytest.param("1000m", id="1000m"),
        pytest.param("+1", id="plus-1"),
        pytest.param(1.0, id="1.0-number"),
        # The API server takes spaces away before it reads one (k8s.io/apimachinery quantity.go, UnmarshalJSON).
        pytest.param("1 ", id="space-at-the-end"),
        pytest.param(" 1", id="space-first"),
    ],
)
def test_one_gpu(assert_verdict: Callable[..., Any], review: Callable[..., Any], amount: Any) -> None:
    assert_verdict(review(pod({"limits": {"nvidia.com/gpu": amount}})), None)


@pytest.mark.parametrize(
    "amount",
    [
        pytest.param(0, id="0-number"),
        pytest.param("0", id="0"),
        pytest.param(None, id="null"),
        pytest.param("-0", id="minus-0"),
    ],
)
def test_no_gpu(assert_verdict: Callable[..., Any], review: Callable[..., Any], amount: Any) -> None:
    assert_verdict(review(pod({"limits": {"nvidia.com/gpu": amount}}, key="")), None)


@pytest.mark.parametrize(
    ("amount", "says"),
    [
        pytest.param(1.5, "fraction", id="1.5-number"),
        pytest.param("1.5", "fraction", id="1.5"),
        pytest.param("500m", "fraction", id="500m"),
        pytest.param("-1", "negative", id="minus-1"),
        pytest.param(-1, "negative", id="minus-1-number"),
        pytest.param("1k", "1000 nvidia.com/gpu", id="1k"),
        pytest.param("1Ki", "1024 nvidia.com/gpu", id="1Ki"),
        pytest.param(10**30, "maximum of any known machine: 16", id="77-10^30-number"),
        pytest.param("1" + "0" * 30, "maximum of any known machine: 16", id="77-10^30"),
        pytest.param("1e30", "maximum of any known machine: 16", id="1e30"),
        pytest.param("1e999999999", "maximum of any known machine: 16", id="1e999999999"),
        pytest.param("", NO_QUANTITY, id="empty"),
        pytest.param("\uff19", NO_QUANTITY, id="full-width-digit"),
        pytest.param("\u0661", NO_QUANTITY, id="arabic-digit"),
        pytest.param("1\n", NO_QUANTITY, id="newline"),
        pytest.param("0x1", NO_QUANTITY, id="hexadecimal"),
        pytest.param("1_000", NO_QUANTITY, id="underscore"),
        pytest.param("nan", NO_QUANTITY, id="nan"),
        pytest.param("1\x1b[31m", NO_QUANTITY, id="control-characters"),
        pytest.param("1" * 10_000, "digits", id="10000-digits"),
        pytest.param("1" + "x" * 10_000, NO_QUANTITY, id="10000-characters"),
        pytest.param(True, "a boolean", id="boolean"),
        pytest.param([], "a list", id="list"),
        pytest.param({}, "an object", id="object"),
    ],
)
def test_amounts_that_nobody_can_give(
    assert_verdict: Callable[..., Any], review: Callable[..., Any], amount: Any, says: str
) -> None:
    assert_verdict(review(pod({"limits": {"nvidia.com/gpu": amount}})), says)


@pytest.mark.parametrize("amount", ["1_", "0x1", "", [], True], ids=lambda amount: f"cpu-{amount!r}")
def test_amounts_of_other_resources(
    assert_verdict: Callable[..., Any], review: Callable[..., Any], amount: Any
) -> None:
    answer = assert_verdict(review(pod({"requests": {"cpu": amount}}, key="")), "quantity")
    assert answer["status"]["code"] == 422


ONE_GPU = {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("resources", "key", "containers", "says"),
    [
        pytest.param({"requests": ONE_GPU}, "nvidia.com/gpu", "containers", "without a limit", id="requests-only"),
        pytest.param(
            {"requests": ONE_GPU, "limits": {"nvidia.com/gpu": "2"}},
            "nvidia.com/gpu",
            "containers",
            "must be equal",
            id="limit-is-not-the-request",
        ),
        pytest.param({"limits": ONE_GPU}, "nvidia.com/gpu", "initContainers", None, id="init-container-only"),
        pytest.param({"limits": {"amd.com/gpu": "1"}}, "amd.com/gpu", "containers", None, id="amd"),
        pytest.param({"limits": {"amd.com/gpu": "0.5"}}, "amd.com/gpu", "containers", "fraction", id="half-an-amd"),
        pytest.param({"limits": {"nvidia.com/mig-1g.5gb": "1"}}, "nvidia.com/gpu", "containers", None, id="mig"),
        pytest.param(
            {"limits": {"nvidia.com/mig-9g.9gb": "1"}},
            "nvidia.com/gpu",
            "containers",
            "mig-9g.9gb",
            id="no-such-mig",
        ),
        pytest.param(
            {"limits": {"nvidia.com/mig-\u0661g.5gb": "1"}}, "nvidia.com/gpu", "containers", "mig", id="odd-mig"
        ),
        pytest.param({"limits": {"x.com/gpu-shared": "1"}}, "", "containers", None, id="unknown-vendor"),
        pytest.param({"limits": {"x.com/gpu-shared": "0.5"}}, "", "containers", None, id="half-of-an-unknown-vendor"),
        pytest.param({"limits": {"nvidia.com/gpu/x": "1", "/": "1", "": "1"}}, "", "containers", None, id="no-names"),
        pytest.param({"limits": {"n" * 10_000 + "/gpu": "1"}}, "", "containers", None, id="name-of-10-KB"),
    ],
)
def test_where_and_what_is_asked_for(
    assert_verdict: Callable[..., Any],
    review: Callable[..., Any],
    resources: Any,
    key: str,
    containers: str,
    says: str | None,
) -> None:
    assert_verdict(review(pod(resources, key=key, containers=containers)), says)
