"""How the API server reads JSON patches where libraries differ; it uses evanphx/json-patch v4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from api_server.stub_webhook import patching
from stub_webhook.registration import config_map, rule

if TYPE_CHECKING:
    from cluster.answer import Answer
    from stub_webhook.registration import Registrar
    from stub_webhook.server import Stub

Json = dict[str, Any]
ONE, TWO, NEW = "e2e.gpugate.dev/one", "e2e.gpugate.dev/two", "e2e.gpugate.dev/new"
DATA = {"a": "b"}


def patched(stub: Stub, registrar: Registrar, operation: Json) -> Answer:
    """Create a ConfigMap to which a webhook applies one operation."""
    stub.behaviour = lambda call: patching(call.request, [operation])
    made = config_map(registrar.namespace, finalizers=[ONE, TWO]) | {"data": DATA}
    with registrar.registered("mutating", registrar.hook()):
        return registrar.api.create(made, dry_run=True)


@pytest.mark.parametrize(
    ("operation", "data"),
    [
        pytest.param({"op": "replace", "path": "/data/c", "value": "d"}, DATA | {"c": "d"}, id="replace-missing"),
        pytest.param({"op": "add", "path": "x/data/c", "value": "d"}, DATA | {"c": "d"}, id="no-leading-slash"),
        pytest.param({"op": "add", "path": "/data/c"}, DATA | {"c": ""}, id="add-without-value"),
        pytest.param({"op": "test", "path": "/data/c", "value": None}, DATA, id="test-null-against-missing"),
        pytest.param({"op": "add", "path": "/data/c", "value": "d", "more": 1}, DATA | {"c": "d"}, id="more-members"),
    ],
)
def test_members(stub: Stub, registrar: Registrar, operation: Json, data: dict[str, str]) -> None:
    answer = patched(stub, registrar, operation)
    assert answer.ok, answer.message
    assert answer.body["data"] == data


@pytest.mark.parametrize(
    ("place", "finalizers"),
    [("-", [ONE, TWO, NEW]), ("1", [ONE, NEW, TWO]), ("01", [ONE, NEW, TWO]), ("-1", [ONE, TWO, NEW])],
)
def test_places_in_a_list(stub: Stub, registrar: Registrar, place: str, finalizers: list[str]) -> None:
    answer = patched(stub, registrar, {"op": "add", "path": f"/metadata/finalizers/{place}", "value": NEW})
    assert answer.ok, answer.message
    assert answer.body["metadata"]["finalizers"] == finalizers


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "remove", "path": "/data/c"}, id="remove-missing"),
        pytest.param({"op": "add", "path": "/more/c", "value": "d"}, id="missing-parent"),
        pytest.param({"op": "add", "path": "/metadata/finalizers/7", "value": NEW}, id="place-beyond-the-end"),
        pytest.param({"op": "test", "path": "/data/a", "value": "c"}, id="test-fails"),
        pytest.param({"op": "ADD", "path": "/data/c", "value": "d"}, id="upper-case"),
        pytest.param({"op": "add", "path": "", "value": {}}, id="add-the-root"),
    ],
)
def test_what_does_not_apply(stub: Stub, registrar: Registrar, operation: Json) -> None:
    assert patched(stub, registrar, operation).code == 500


def test_an_unknown_escape_is_left_as_it_is(stub: Stub, registrar: Registrar) -> None:
    answer = patched(stub, registrar, {"op": "add", "path": "/data/a~2b", "value": "d"})
    assert 'Invalid value: "a~2b"' in answer.message


def test_a_deletion_may_not_be_patched(stub: Stub, registrar: Registrar) -> None:
    stored = config_map(registrar.namespace)
    assert registrar.api.create(stored).ok
    stub.behaviour = lambda call: patching(call.request, [{"op": "add", "path": "/data", "value": {}}])
    hook = registrar.hook(rules=[rule("configmaps", "DELETE")], failurePolicy="Ignore")
    with registrar.registered("mutating", hook):
        answer = registrar.api.delete(stored)
    assert answer.code == 500
    assert "attempted to modify the object, which is not supported" in answer.message
