from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gpugate.policies.nodepools.missing_cost_labels import Params


@pytest.mark.parametrize(
    "params",
    [
        {"defaults": {"node.kubernetes.io/instance-type": "p5.48xlarge"}},
        {"defaults": {"karpenter.sh/capacity-type": "spot"}},
        {"from_labels": {"karpenter.k8s.aws/instance-family": "family"}},
    ],
    ids=["Kubernetes", "Karpenter", "its AWS provider"],
)
def test_a_label_that_would_choose_nodes_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError, match="is a label of Kubernetes or Karpenter"):
        msgspec.convert(params, Params)


def test_a_label_of_your_own_may_have_a_domain() -> None:
    assert msgspec.convert({"defaults": {"example.com/team": "a"}}, Params).defaults == {"example.com/team": "a"}
