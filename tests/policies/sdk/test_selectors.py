from __future__ import annotations

import pytest
import yaml

from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.scheduling import selects

LABELS = {"app": "llm", "tier": "gpu", "empty": ""}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        pytest.param("null", False, id="absent selects nothing"),
        pytest.param("{}", True, id="empty selects everything"),
        pytest.param("{matchLabels: {}, matchExpressions: []}", True, id="empty members select everything"),
        pytest.param("[]", False, id="a list is no selector"),
        pytest.param("{matchLabels: {app: llm}}", True, id="one label"),
        pytest.param("{matchLabels: {app: llm, tier: gpu}}", True, id="all labels"),
        pytest.param("{matchLabels: {app: llm, tier: cpu}}", False, id="one of two labels differs"),
        pytest.param("{matchLabels: {zone: a}}", False, id="a label the object lacks"),
        pytest.param("{matchLabels: {empty: ''}}", True, id="an empty value"),
        pytest.param("{matchLabels: {zone: ''}}", False, id="an empty value is not a missing label"),
        pytest.param("{matchExpressions: [{key: app, operator: In, values: [llm, web]}]}", True, id="In"),
        pytest.param("{matchExpressions: [{key: app, operator: In, values: [web]}]}", False, id="not In"),
        pytest.param("{matchExpressions: [{key: zone, operator: In, values: [a]}]}", False, id="In without the label"),
        pytest.param("{matchExpressions: [{key: app, operator: NotIn, values: [web]}]}", True, id="NotIn"),
        pytest.param("{matchExpressions: [{key: app, operator: NotIn, values: [llm]}]}", False, id="among NotIn"),
        pytest.param(
            "{matchExpressions: [{key: zone, operator: NotIn, values: [a]}]}", True, id="NotIn without the label"
        ),
        pytest.param("{matchExpressions: [{key: app, operator: Exists}]}", True, id="Exists"),
        pytest.param("{matchExpressions: [{key: zone, operator: Exists}]}", False, id="Exists without the label"),
        pytest.param("{matchExpressions: [{key: zone, operator: DoesNotExist}]}", True, id="DoesNotExist"),
        pytest.param("{matchExpressions: [{key: app, operator: DoesNotExist}]}", False, id="DoesNotExist with it"),
        pytest.param("{matchExpressions: [{key: app, operator: Gt, values: ['1']}]}", False, id="no such operator"),
        pytest.param(
            "{matchLabels: {app: llm}, matchExpressions: [{key: tier, operator: NotIn, values: [gpu]}]}",
            False,
            id="labels and expressions must both hold",
        ),
    ],
)
def test_it_selects(selector: str, selected: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert selects(Field(yaml.safe_load(selector)), LABELS) is selected
