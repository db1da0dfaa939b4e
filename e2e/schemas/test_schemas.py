"""What we say of 2,000 objects that were changed at random, against what the API server does with them.

Each is created as a dry run with `fieldValidation=Strict`. Both must take it or both refuse it, and of what is refused
the API server's fields must be among ours.
"""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from schemas.mutations import mutated, words_of
from schemas.refusals import refused, told, unnamed

from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.objects import GroupVersionKind
from gpugate.policies.sdk.platform import Target
from gpugate.webhook.manifests.load import load
from gpugate.webhook.schemas import tables
from gpugate.webhook.schemas.check import Schemas
from gpugate.webhook.schemas.tables import around, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.api import Api

    from gpugate.webhook.schemas.wording import SchemaProblem

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CASES = 2_000
WANTED = 0.99
START = 20_260_101
OWN_CASES = 500
DEFINED = frozenset({"karpenter.sh", "karpenter.k8s.aws", "autoscaling.x-k8s.io", "keda.sh"})
OWN = frozenset({"resource.k8s.io"})
# What e2e/crds installs.
TARGET = Target(karpenter="1.14", keda="2.21")
KINDS = {
    DEFINED: {"NodePool", "NodeClaim", "EC2NodeClass", "NodeOverlay", "CapacityBuffer", "ScaledObject", "ScaledJob"},
    OWN: {"ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice"},
}


def kind_of(obj: dict[str, Any]) -> GroupVersionKind:
    return GroupVersionKind.of(obj["apiVersion"], obj["kind"])


def problems(schemas: Schemas, obj: dict[str, Any]) -> list[SchemaProblem]:
    kind = kind_of(obj)
    return list(schemas.problems(obj, kind.group, kind.version, kind.kind, TARGET))


def stock(groups: frozenset[str]) -> list[dict[str, Any]]:
    """What there is of kinds with a definition."""
    return stock_of(lambda kind: kind.group in groups and is_known(kind))


def stock_of(wanted: Callable[[GroupVersionKind], bool]) -> list[dict[str, Any]]:
    """The examples of policies, the fixtures of the fast tests and the objects here, of some kinds."""
    files = sorted((ROOT / "policies").rglob("examples/*/*.yaml")) + sorted(
        (ROOT / "tests/fixtures/manifests").iterdir()
    )
    found = [dict(m.request.object or {}) for file in files for m in load([str(file)]).manifests]
    found += list(yaml.safe_load_all((HERE / "objects.yaml").read_text(encoding="utf-8")))
    return [copy.deepcopy(obj) for obj in found if wanted(kind_of(obj))]


def is_known(kind: GroupVersionKind) -> bool:
    file = tables.find(kind.group, kind.kind, None)
    return file is not None and kind.version in around(read(file), TARGET)[-1].served


def prepared(obj: dict[str, Any]) -> dict[str, Any]:
    """Give an object a name and take it to a namespace that is there."""
    metadata = {
        "name": "schemas",
        **{k: v for k, v in obj["metadata"].items() if k in {"name", "labels", "annotations"}},
    }
    return {**obj, "metadata": metadata}


def valid(api: Api, schemas: Schemas, groups: frozenset[str]) -> list[dict[str, Any]]:
    objects = [prepared(obj) for obj in stock(groups)]
    return [obj for obj in objects if not problems(schemas, obj) and api.create(obj, dry_run=True, strict=True).ok]


def difference(api: Api, schemas: Schemas, obj: dict[str, Any]) -> tuple[bool, str]:
    """Return whether the API server takes an object, and where we are of another mind."""
    answer = api.create(obj, dry_run=True, strict=True)
    ours = problems(schemas, obj)
    lost = unnamed(refused(answer), told(problem.path for problem in ours))
    if answer.ok == (not ours) and not lost:
        return answer.ok, ""
    said = "; ".join(f"{render(problem.path)}: {problem.message}" for problem in ours[:4]) or "nothing"
    there = f"the API server {answer.code} {answer.message[:300]!r}, names alone {sorted(lost)}"
    return answer.ok, f"{obj['kind']}: {there}; we: {said}; the object: {json.dumps(obj)[:2_000]}"


def changed(api: Api, schemas: Schemas, groups: frozenset[str], count: int) -> Iterator[dict[str, Any]]:
    """Yield valid objects with changes, of each kind as many as of the others."""
    chance = random.Random(START)  # noqa: S311 -- the same cases each time
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for obj in valid(api, schemas, groups):
        by_kind.setdefault(obj["kind"], []).append(obj)
    assert by_kind.keys() >= KINDS[groups]
    words = words_of([obj for objects in by_kind.values() for obj in objects])
    for _ in range(count):
        yield mutated(chance.choice(by_kind[chance.choice(sorted(by_kind))]), words, chance)


@pytest.mark.usefixtures("unregistered")
def test_objects_changed_at_random_are_refused_where_the_api_server_refuses_them(api: Api, figures: list[str]) -> None:
    schemas = Schemas()
    outcomes = [difference(api, schemas, obj) for obj in changed(api, schemas, DEFINED, CASES)]
    differences = [said for _, said in outcomes if said]
    equal = 1 - len(differences) / CASES
    taken = sum(ok for ok, _ in outcomes)
    figures.append(f"schemas: {equal:.2%} of {CASES:,} changed objects as the API server has it; it took {taken:,}")
    figures += [f"  {line}" for line in differences]
    assert equal >= WANTED, "\n".join(differences)


@pytest.mark.usefixtures("unregistered")
def test_what_is_refused_of_the_api_servers_own_kinds_it_refuses_too(api: Api, figures: list[str]) -> None:
    """It refuses more of them: much of what it asks is in no schema."""
    schemas = Schemas()
    objects = list(changed(api, schemas, OWN, OWN_CASES))
    refusing = [obj for obj in objects if problems(schemas, obj)]
    answers = [api.create(obj, dry_run=True, strict=True) for obj in objects]
    wrong = [obj for obj, answer in zip(objects, answers, strict=True) if answer.ok and problems(schemas, obj)]
    refused_there = sum(not answer.ok for answer in answers)
    figures.append(
        f"schemas: of {OWN_CASES:,} objects of its own kinds it refuses {refused_there:,}, and we {len(refusing):,}"
    )
    assert [(obj, problems(schemas, obj)) for obj in wrong] == []
