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
        pytest.param(1, id="77-1-number"),
        pytest.param("1", id="77-1"),
        pytest.param("1e0", id="77-1e0"),
        pytest.param("1000m", id="77-1000m"),
        pytest.param("+1", id="77-plus-1"),
        pytest.param(1.0, id="77-1.0-number"),
        # The API server takes spaces away before it reads one (k8s.io/apimachinery quantity.go, UnmarshalJSON).
        pytest.param("1 ", id="77-space-at-the-end"),
        pytest.param(" 1", id="77-space-first"),
    ],
)
def test_one_gpu(judged: Callable[..., Any], review: Callable[..., Any], amount: Any) -> None:
    judged(review(pod({"limits": {"nvidia.com/gpu": amount}})), None)


@pytest.mark.parametrize(
    "amount",
    [
        pytest.param(0, id="77-0-number"),
        pytest.param("0", id="77-0"),
        pytest.param(None, id="77-null"),
        pytest.param("-0", id="77-minus-0"),
    ],
)
def test_no_gpu(judged: Callable[..., Any], review: Callable[..., Any], amount: Any) -> None:
    judged(review(pod({"limits": {"nvidia.com/gpu": amount}}, key="")), None)


@pytest.mark.parametrize(
    ("amount", "says"),
    [
        pytest.param(1.5, "fraction", id="77-1.5-number"),
        pytest.param("1.5", "fraction", id="77-1.5"),
        pytest.param("500m", "fraction", id="77-500m"),
        pytest.param("-1", "negative", id="77-minus-1"),
        pytest.param(-1, "negative", id="77-minus-1-number"),
        pytest.param("1k", "1000 nvidia.com/gpu", id="77-1k"),
        pytest.param("1Ki", "1024 nvidia.com/gpu", id="77-1Ki"),
        pytest.param(10**30, "is the most that it can get", id="77-10^30-number"),
        pytest.param("1" + "0" * 30, "is the most that it can get", id="77-10^30"),
        pytest.param("1e30", "is the most that it can get", id="77-1e30"),
        pytest.param("1e999999999", "is the most that it can get", id="77-1e999999999"),
        pytest.param("", NO_QUANTITY, id="77-empty"),
        pytest.param("\uff19", NO_QUANTITY, id="77-full-width-digit"),
        pytest.param("\u0661", NO_QUANTITY, id="77-arabic-digit"),
        pytest.param("1\n", NO_QUANTITY, id="77-newline"),
        pytest.param("0x1", NO_QUANTITY, id="77-hexadecimal"),
        pytest.param("1_000", NO_QUANTITY, id="77-underscore"),
        pytest.param("nan", NO_QUANTITY, id="77-nan"),
        pytest.param("1\x1b[31m", NO_QUANTITY, id="77-control-characters"),
        pytest.param("1" * 10_000, "digits", id="77-10000-digits"),
        pytest.param("1" + "x" * 10_000, NO_QUANTITY, id="77-10000-characters"),
        pytest.param(True, "a boolean", id="77-boolean"),
        pytest.param([], "a list", id="77-list"),
        pytest.param({}, "an object", id="77-object"),
    ],
)
def test_amounts_that_nobody_can_give(
    judged: Callable[..., Any], review: Callable[..., Any], amount: Any, says: str
) -> None:
    judged(review(pod({"limits": {"nvidia.com/gpu": amount}})), says)


@pytest.mark.parametrize("amount", ["1_", "0x1", "", [], True], ids=lambda amount: f"77-cpu-{amount!r}")
def test_amounts_of_other_resources(judged: Callable[..., Any], review: Callable[..., Any], amount: Any) -> None:
    answer = judged(review(pod({"requests": {"cpu": amount}}, key="")), "quantity")
    assert answer["status"]["code"] == 422


ONE_GPU = {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("resources", "key", "containers", "says"),
    [
        pytest.param({"requests": ONE_GPU}, "nvidia.com/gpu", "containers", "without a limit", id="78-requests-only"),
        pytest.param(
            {"requests": ONE_GPU, "limits": {"nvidia.com/gpu": "2"}},
            "nvidia.com/gpu",
            "containers",
            "must be the same",
            id="78-limit-is-not-the-request",
        ),
        pytest.param({"limits": ONE_GPU}, "nvidia.com/gpu", "initContainers", None, id="78-init-container-only"),
        pytest.param({"limits": {"amd.com/gpu": "1"}}, "amd.com/gpu", "containers", None, id="78-amd"),
        pytest.param({"limits": {"amd.com/gpu": "0.5"}}, "amd.com/gpu", "containers", "fraction", id="78-half-an-amd"),
        pytest.param({"limits": {"nvidia.com/mig-1g.5gb": "1"}}, "nvidia.com/gpu", "containers", None, id="78-mig"),
        pytest.param(
            {"limits": {"nvidia.com/mig-9g.9gb": "1"}},
            "nvidia.com/gpu",
            "containers",
            "mig-9g.9gb",
            id="78-no-such-mig",
        ),
        pytest.param(
            {"limits": {"nvidia.com/mig-\u0661g.5gb": "1"}}, "nvidia.com/gpu", "containers", "mig", id="78-odd-mig"
        ),
        pytest.param({"limits": {"x.com/gpu-shared": "1"}}, "", "containers", None, id="78-unknown-vendor"),
        pytest.param(
            {"limits": {"x.com/gpu-shared": "0.5"}}, "", "containers", None, id="78-half-of-an-unknown-vendor"
        ),
        pytest.param(
            {"limits": {"nvidia.com/gpu/x": "1", "/": "1", "": "1"}}, "", "containers", None, id="78-no-names"
        ),
        pytest.param({"limits": {"n" * 10_000 + "/gpu": "1"}}, "", "containers", None, id="78-name-of-10-KB"),
    ],
)
def test_where_and_what_is_asked_for(
    judged: Callable[..., Any], review: Callable[..., Any], resources: Any, key: str, containers: str, says: str | None
) -> None:
    judged(review(pod(resources, key=key, containers=containers)), says)
