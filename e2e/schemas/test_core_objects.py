"""What we say of workloads and other objects of Kubernetes that were changed at random, against the API server's own answer.

Whatever we report, it rejects; and each unknown field or wrong type that it names, we report.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pytest
from schemas.mutations import mutated, words_of
from schemas.refusals import spelt
from schemas.test_schemas import START, kind_of, prepared, stock_of

from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.platform import Target
from gpugate.webhook.schemas.core import CoreObjects
from gpugate.webhook.schemas.tables import CORE_KINDS

if TYPE_CHECKING:
    from cluster.api import Api

CASES = 1_500
_UNKNOWN = re.compile(r'unknown field "((?:[^"\\]|\\.)*)"')
# What strict decoding says of a value of another type.
_DECODING = re.compile(r"cannot unmarshal|unable to parse quantity|quantities must match|cannot be handled as a")


@pytest.mark.usefixtures("unregistered")
def test_objects_changed_at_random_are_decoded_as_the_api_server_decodes_them(api: Api, figures: list[str]) -> None:
    core, chance = CoreObjects(Target()), random.Random(START)  # noqa: S311 -- the same cases each time

    def problems(obj: dict[str, Any]) -> set[str]:
        return {spelt(render(problem.path)) for problem in core.problems(kind_of(obj), obj)}

    by_kind: dict[str, list[dict[str, Any]]] = {}
    kinds = {pair for pair in CORE_KINDS if pair[0] != "resource.k8s.io"}
    for obj in map(prepared, stock_of(lambda kind: (kind.group, kind.kind) in kinds)):
        if api.create(obj, dry_run=True, strict=True).ok:
            assert not problems(obj), obj
            by_kind.setdefault(obj["kind"], []).append(obj)
    words = words_of([obj for objects in by_kind.values() for obj in objects])
    wrong, reported = [], 0
    for _ in range(CASES):
        obj = mutated(chance.choice(by_kind[chance.choice(sorted(by_kind))]), words, chance)
        answer, ours = api.create(obj, dry_run=True, strict=True), problems(obj)
        reported += bool(ours)
        unknown = {spelt(field) for field in _UNKNOWN.findall(answer.message)}
        decoding = _DECODING.search(answer.message) is not None
        if (answer.ok and ours) or unknown - ours or (decoding and not ours):
            wrong.append((answer.code, answer.message[:300], sorted(ours), sorted(unknown - ours), obj["kind"]))
    figures.append(
        f"schemas: {reported:,} of {CASES:,} changed objects of {len(by_kind)} core kinds are rejected by us too"
    )
    assert wrong == [], "\n".join(map(str, wrong))
