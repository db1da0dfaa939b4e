"""Which labels a label selector selects.

Source: `k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go` (LabelSelectorAsSelector), `pkg/labels/selector.go`, v0.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.policies.sdk.field import Field


def selects(selector: Field, labels: Mapping[str, str]) -> bool:
    """Tell whether a LabelSelector selects an object with these labels.

    One that is absent selects nothing, an empty one everything. `NotIn` and `DoesNotExist` select objects without the
    label. An operator that does not exist, which the API server refuses, selects nothing.
    """
    return (
        isinstance(selector.value, dict)
        and all(labels.get(key) == value for key, value in selector["matchLabels"].mapping.items())
        and all(_meets(expression, labels) for expression in selector["matchExpressions"])
    )


def _meets(expression: Field, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"].text, expression["values"].texts
    match expression["operator"].text:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
