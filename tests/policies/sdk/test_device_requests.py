from __future__ import annotations

import pytest
import yaml

from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.gpu_demand import alternatives


@pytest.mark.parametrize(
    ("request_", "classes"),
    [
        pytest.param("{name: a, deviceClassName: x}", ["x"], id="inline, as in v1beta1"),
        pytest.param("{name: a, exactly: {deviceClassName: x}}", ["x"], id="exactly, as in v1"),
        pytest.param("{firstAvailable: [{deviceClassName: x}, {deviceClassName: y}]}", ["x", "y"], id="alternatives"),
        pytest.param(
            "{deviceClassName: x, exactly: {deviceClassName: y}, firstAvailable: [{deviceClassName: z}]}",
            ["x", "y", "z"],
            id="everywhere at once, which no version takes",
        ),
        pytest.param("{count: 2}", [""], id="inline without a class"),
        pytest.param("{name: a}", [], id="nothing asked for"),
        pytest.param("gpu", [], id="not an object"),
    ],
)
def test_it_finds_what_is_asked_for_wherever_it_stands(request_: str, classes: list[str]) -> None:
    found = alternatives(Field(yaml.safe_load(request_)))
    assert [ask["deviceClassName"].text for ask in found] == classes
