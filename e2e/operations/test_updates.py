"""An update answers for what it adds, however it is made; what was there before costs a warning."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from violating import HIDDEN_ACCESS, UNCONSOLIDATED, UNLIMITED, WILDCARD, node_class, node_pool, pod

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from cluster.answer import Answer
    from cluster.api import Api
    from operations.conftest import StoreBefore

    Kubectl = Callable[..., subprocess.CompletedProcess[str]]

Json = dict[str, Any]
UNRELATED: Json = {"metadata": {"labels": {"changed": "yes"}}}
ADDING: Json = {"spec": {"disruption": {"consolidateAfter": "Never"}}}
FINALIZER = "e2e.gpugate.dev/not-yet"


@dataclass(frozen=True)
class Ended:
    """How an update ended: whether it was done, why not, and what was said besides."""

    done: bool
    refusal: str
    warnings: str


@dataclass(frozen=True)
class Updating:
    """The ways to change an object that was stored from `manifest`."""

    api: Api
    kubectl: Kubectl
    manifest: Json

    def put(self, change: Json) -> Ended:
        return _of_api(self.api.replace(merged(self.api.get(self.manifest), change)))

    def merge_patch(self, change: Json) -> Ended:
        return _of_api(self.api.patch(self.manifest, change, kind="merge"))

    def json_patch(self, change: Json) -> Ended:
        operations = [
            {"op": "add", "path": f"/{section}/{name}", "value": value}
            for section, members in change.items()
            for name, value in members.items()
        ]
        return _of_api(self.api.patch(self.manifest, operations, kind="json"))

    def server_side_apply(self, change: Json) -> Ended:
        named = {key: self.manifest[key] for key in ("apiVersion", "kind", "metadata")}
        return _of_api(self.api.apply(merged(named, change), manager="another", force=True))

    def kubectl_apply(self, change: Json) -> Ended:
        return self._with_kubectl("apply", "--filename=-", stdin=json.dumps(merged(self.manifest, change)))

    def kubectl_server_side_apply(self, change: Json) -> Ended:
        manifest = json.dumps(merged(self.manifest, change))
        return self._with_kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=manifest)

    def kubectl_patch(self, change: Json) -> Ended:
        name = self.manifest["metadata"]["name"]
        return self._with_kubectl("patch", "nodepool", name, "--type=merge", f"--patch={json.dumps(change)}")

    def _with_kubectl(self, *arguments: str, stdin: str | None = None) -> Ended:
        ran = self.kubectl(*arguments, stdin=stdin)
        lines = ran.stderr.splitlines()
        warnings = [line for line in lines if line.startswith("Warning: ")]
        return Ended(
            ran.returncode == 0, "\n".join(line for line in lines if line not in warnings), "\n".join(warnings)
        )


WAYS = (
    Updating.put,
    Updating.merge_patch,
    Updating.json_patch,
    Updating.server_side_apply,
    Updating.kubectl_apply,
    Updating.kubectl_server_side_apply,
    Updating.kubectl_patch,
)


def _of_api(answer: Answer) -> Ended:
    return Ended(answer.ok, answer.message, "\n".join(answer.warnings))


def merged(obj: Json, change: Json) -> Json:
    result = copy.deepcopy(obj)
    for key, value in change.items():
        result[key] = merged(result.get(key, {}), value) if isinstance(value, dict) else value
    return result


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_an_update_is_denied_for_what_it_adds_and_for_nothing_else(
    api: Api, kubectl: Kubectl, store_before: StoreBefore, way: Callable[[Updating, Json], Ended]
) -> None:
    manifest = node_pool()
    store_before(manifest)
    updating = Updating(api, kubectl, manifest)

    unrelated = way(updating, UNRELATED)
    assert (unrelated.done, unrelated.refusal) == (True, "")
    assert UNLIMITED in unrelated.warnings

    adding = way(updating, ADDING)
    assert not adding.done
    assert UNCONSOLIDATED in adding.refusal
    assert UNLIMITED not in adding.refusal
    assert api.get(manifest)["spec"]["disruption"]["consolidateAfter"] != "Never"


def test_a_strategic_patch_of_a_pod(api: Api, namespace: str, store_before: StoreBefore) -> None:
    (stored,) = store_before(pod(namespace))
    unrelated = api.patch(stored, UNRELATED, kind="strategic")
    assert unrelated.ok, unrelated.message
    assert any(HIDDEN_ACCESS in warning for warning in unrelated.warnings)

    tolerations = [*stored["spec"]["tolerations"], {"operator": "Exists"}]
    adding = api.patch(stored, {"spec": {"tolerations": tolerations}}, kind="strategic")
    assert adding.code == 403
    assert WILDCARD in adding.message
    assert HIDDEN_ACCESS not in adding.message


def test_a_violation_that_was_fixed_may_not_come_back(api: Api, store_before: StoreBefore) -> None:
    (stored,) = store_before(node_pool())
    fixed = api.patch(stored, {"spec": {"limits": {"nvidia.com/gpu": "8"}}})
    assert fixed.ok
    assert not any(UNLIMITED in warning for warning in fixed.warnings)
    broken = api.patch(stored, {"spec": {"limits": None}})
    assert UNLIMITED in broken.message


@pytest.mark.parametrize("make", [node_class, pod], ids=["cluster-scoped", "namespaced"])
def test_a_finalizer_can_be_taken_from_a_violating_object_that_is_being_deleted(
    api: Api, namespace: str, store_before: StoreBefore, make: Callable[..., Json]
) -> None:
    manifest = make(namespace) if make is pod else make()
    manifest["metadata"]["finalizers"] = [FINALIZER]
    (stored,) = store_before(manifest)
    assert api.delete(stored).ok
    assert api.get(stored)["metadata"]["deletionTimestamp"]
    removed = api.patch(stored, {"metadata": {"finalizers": None}})
    assert removed.ok, removed.message
    assert api.eventually(stored, lambda left: not left) == {}
