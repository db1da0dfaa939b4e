"""Files of policies for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PAUSED = '''"""ScaledObject that is paused.

## Why is this bad?
A paused scaler does not add replicas.

## Instead
Remove the annotation.

## Sources
Platform handbook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.objects import SCALED_OBJECT
from gpugate.policies.sdk.policy import Params, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import Context

SDK = 1


class PausedParams(Params, frozen=True, kw_only=True):
    """Parameters.

    Attributes:
        annotation: the annotation that pauses.
    """

    annotation: str = "autoscaling.keda.sh/paused"


@validates(SCALED_OBJECT, params=PausedParams, mode=Stance.ENFORCE)
def check(scaler: Field, ctx: Context[PausedParams]) -> Iterator[Violation]:
    """Find the annotation."""
    paused = scaler["metadata", "annotations", ctx.params.annotation]
    if paused.text == "true":
        fix = Patches((Patch("remove", paused.path, None, "resume"),), safe=True)
        yield Violation(paused.path, "the scaler is paused", hint="Remove the annotation", fix=fix)
'''

SMALL = """apiVersion: gpugate.dev/v1
kind: Policy
id: acme/many-replicas
title: ScaledObject with many replicas
why: The account has a quota of 8 GPUs.
instead: Lower the maximum.
mode: enforce
match:
  kinds: [ScaledObject]
params:
  most: 3
validations:
  - expression: object.spec.?maxReplicaCount.orValue(100) <= params.most
    message: has too many replicas
    path: spec.maxReplicaCount
    fix: Lower maxReplicaCount.
"""

SCALER = """apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: llm
  namespace: serving
  annotations:
    autoscaling.keda.sh/paused: "true"
spec:
  scaleTargetRef: {name: llm}
  minReplicaCount: 1
  maxReplicaCount: 4
  triggers:
    - {type: cron, metadata: {timezone: UTC, start: 0 6 * * *, end: 0 20 * * *, desiredReplicas: "2"}}
"""


def write(root: Path, files: dict[str, str]) -> None:
    """Write files by their relative names."""
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def policy(body: str, doc: str = "Pod that is bad.") -> str:
    """Return a file with documentation and the names that most policies import."""
    return (
        f'"""{doc}"""\n'
        "from gpugate.policies.sdk.findings import Patch, Skip, Stance, Violation\n"
        "from gpugate.policies.sdk.objects import POD\n"
        "from gpugate.policies.sdk.policy import mutates, validates\n"
        f"{body}\n"
    )
