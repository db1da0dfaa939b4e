"""What a JSON patch makes of an object: as the API server's library applies it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jsonpatch
from api_server import patch_conduct
from hypothesis import given
from hypothesis import strategies as st
from oracle.patch_strategies import changes, objects

from gpugate.policies.engine.patching import PatchError, apply

if TYPE_CHECKING:
    from oracle.process import Oracle

    from gpugate.policies.sdk.field import Json


@given(st.data())
def test_the_operations_of_a_change_make_the_same_object(oracle: Oracle, data: st.DataObject) -> None:
    obj = data.draw(objects)
    ours, operations = obj, []
    for _ in range(data.draw(st.integers(1, 4))):
        try:
            ours, operation = apply(ours, data.draw(changes(ours)))
        except PatchError:
            continue
        operations.append(operation)

    assert written(oracle.ask("patch", {"object": obj, "patch": operations})) == written(ours)
    # The fake API server of the tests holds patches to this rule, and applies them so.
    patch_conduct.check(obj, operations)
    assert written(jsonpatch.apply_patch(obj, operations)) == written(ours)


def written(value: Json) -> str:
    """Write a value so that 1, 1.0 and true are three."""
    return json.dumps(value, sort_keys=True)
