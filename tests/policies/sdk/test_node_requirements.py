from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpugate.policies.sdk.scheduling import may_have, selected

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

KEY = "karpenter.sh/capacity-type"
SPOT = "{key: karpenter.sh/capacity-type, operator: In, values: [spot]}"
NOT_SPOT = "{key: karpenter.sh/capacity-type, operator: NotIn, values: [spot]}"
OTHER = "{key: zone, operator: Exists}"


def pod(selector: str = "{}", *terms: str, preferred: bool = False) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [yaml.safe_load(term) for term in terms]}
    name = "preferredDuringScheduling" if preferred else "requiredDuringSchedulingIgnoredDuringExecution"
    spec: dict[str, Any] = {"nodeSelector": yaml.safe_load(selector), "affinity": {"nodeAffinity": {name: required}}}
    return {"metadata": {}, "spec": spec}


@pytest.mark.parametrize(
    ("wanted", "spot", "values"),
    [
        (pod(), True, set()),
        (pod("{karpenter.sh/capacity-type: spot}"), True, {"spot"}),
        (pod("{karpenter.sh/capacity-type: reserved}"), False, {"reserved"}),
        (pod("{}", f"matchExpressions: [{NOT_SPOT}]"), False, set()),
        (pod("{}", f"matchExpressions: [{NOT_SPOT}]", preferred=True), True, set()),
        (pod("{}", f"matchExpressions: [{SPOT}]", f"matchExpressions: [{NOT_SPOT}]"), True, set()),
        (pod("{}", f"matchExpressions: [{SPOT}]", f"matchExpressions: [{OTHER}]"), True, set()),
        (pod("{}", f"matchExpressions: [{SPOT}, {NOT_SPOT}]"), False, set()),
        (pod("{karpenter.sh/capacity-type: on-demand}", f"matchExpressions: [{SPOT}]"), False, set()),
        (pod("{}", f"matchExpressions: [{NOT_SPOT}]", "{}"), False, set()),
        ({"metadata": {}, "spec": {"nodeSelector": "text", "affinity": []}}, True, set()),
    ],
    ids=[
        *("nothing", "selector", "selector of another", "affinity", "preference", "terms that differ"),
        *("a term about something else", "contradiction", "selector and affinity", "empty term", "wrong types"),
    ],
)
def test_what_the_label_of_its_node_may_be(
    context: Callable[..., Context[Any]], wanted: dict[str, Any], values: set[str], *, spot: bool
) -> None:
    ctx = context(wanted)
    assert may_have(KEY, "spot", ctx) is spot
    assert selected(KEY, ctx) == values


def test_old_names_of_labels_are_the_new_ones(context: Callable[..., Context[Any]]) -> None:
    assert selected("kubernetes.io/arch", context(pod("{beta.kubernetes.io/arch: arm64}"))) == {"arm64"}
