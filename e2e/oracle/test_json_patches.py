"""What a JSON patch makes of an object: as the API server's library applies it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from api_server import json_patch
from api_server.errors import PatchDoesNotApplyError, UndecodablePatchError
from hypothesis import example, given
from hypothesis import strategies as st
from oracle.patch_strategies import changes, objects, patched
from oracle.process import Oracle, Refused

from gpugate.policies.engine.patching import PatchError, apply

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

REFUSED = "refused"


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


@given(patched())
@example(({"a": [None]}, [{"op": "test", "path": "/a", "value": [None]}]))
def test_the_fake_api_server_applies_any_patch_alike(oracle: Oracle, case: tuple[dict[str, Json], Any]) -> None:
    obj, patch = case
    try:
        theirs = written(oracle.ask("patch", {"object": obj, "patch": patch}))
    except Refused:
        theirs = REFUSED
    try:
        ours = written(json_patch.apply(obj, json_patch.decode(json.dumps(patch).encode())))
    except (PatchDoesNotApplyError, UndecodablePatchError):
        ours = REFUSED

    assert ours == theirs


def written(value: Json) -> str:
    """Write a value so that 1, 1.0 and true are three."""
    return json.dumps(value, sort_keys=True)
