"""Creating: by the usual request, by server-side apply, as a dry run, and without a name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from violating import HIDDEN_ACCESS, blameless_pod, pod

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from cluster.answer import Answer
    from cluster.api import Api

Json = dict[str, Any]
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def _nameless(obj: Json) -> Json:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "name"}
    return obj | {"metadata": metadata | {"generateName": "made-"}}


WAYS: dict[str, Callable[[Api, Json], Answer]] = {
    "create": lambda api, obj: api.create(obj),
    "create as dry run": lambda api, obj: api.create(obj, dry_run=True),
    "create without a name": lambda api, obj: api.create(_nameless(obj)),
    "create without a name as dry run": lambda api, obj: api.create(_nameless(obj), dry_run=True),
    "server-side apply": lambda api, obj: api.apply(obj),
    "server-side apply as dry run": lambda api, obj: api.apply(obj, dry_run=True),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_violates_is_denied(api: Api, namespace: str, way: str) -> None:
    answer = WAYS[way](api, pod(namespace))
    assert answer.code == 403
    assert HIDDEN_ACCESS in answer.message
    assert not api.list("v1", "Pod", namespace)


@pytest.mark.parametrize("way", WAYS)
def test_what_lacks_a_toleration_is_given_it(api: Api, namespace: str, way: str) -> None:
    answer = WAYS[way](api, blameless_pod(namespace))
    assert answer.ok, answer.message
    assert TOLERATION in answer.body["spec"]["tolerations"]
    stored = [TOLERATION in each["spec"]["tolerations"] for each in api.list("v1", "Pod", namespace)]
    assert stored == ([] if "dry run" in way else [True])


def test_what_was_applied_can_be_applied_again(api: Api, namespace: str) -> None:
    for _ in range(2):
        answer = api.apply(blameless_pod(namespace))
        assert answer.ok, answer.message
        assert TOLERATION in answer.body["spec"]["tolerations"]


def test_kubectl_apply_can_be_run_again(
    kubectl: Callable[..., subprocess.CompletedProcess[str]], namespace: str
) -> None:
    manifest = json.dumps(blameless_pod(namespace))
    said = [kubectl("apply", "--filename=-", stdin=manifest) for _ in range(2)]
    assert [ran.stdout.split()[-1:] for ran in said] == [["created"], ["unchanged"]], [ran.stderr for ran in said]
