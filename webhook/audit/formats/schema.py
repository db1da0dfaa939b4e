"""The JSON document of an audit, `gpugate.dev/audit/v1`.

Within a version, fields are only added; readers ignore unknown fields.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

SCHEMA: Final = "gpugate.dev/audit/v1"

ActionName = Literal["deny", "mutate", "warn", "record", "allow"]
ModeName = Literal["off", "audit", "warn", "enforce"]
Usd = Annotated[float, Meta(description="US dollars per hour")]
Gpus = Annotated[float, Meta(description="GPUs; a MIG slice is its share of one")]


class PatchDocument(msgspec.Struct, frozen=True):
    """A change of one field; missing parents are created."""

    op: Literal["set", "append", "remove"]
    path: Annotated[tuple[str | int, ...], Meta(description="keys and list indices from the object's root")]
    value: Any
    reason: str


class FixDocument(msgspec.Struct, frozen=True):
    """An edit that fixes a finding: patches, or objects that replace the object."""

    safe: Annotated[bool, Meta(description="false if the fix may change scheduling or cost")]
    patches: tuple[PatchDocument, ...] | None = None
    objects: tuple[dict[str, Any], ...] | None = None


class NameDocument(msgspec.Struct, frozen=True, rename={"api_version": "apiVersion"}):
    """The name of an object."""

    api_version: str
    kind: str
    namespace: str
    name: str


class FindingDocument(msgspec.Struct, frozen=True):
    """A finding of one policy in one object."""

    policy: Annotated[str, Meta(description="id of the policy; empty for a field of the wrong type")]
    path: Annotated[str, Meta(description="the field; empty for the whole object")]
    message: str
    mode: Annotated[ModeName, Meta(description="mode of the finding")]
    action: Annotated[ActionName, Meta(description="what the webhook would do with the object because of this finding")]
    why: str = ""
    hint: str = ""
    note: Annotated[str, Meta(description="why the mode is lower than that of the policy, such as an exemption")] = ""
    fix: FixDocument | None = None
    patches: Annotated[
        tuple[PatchDocument, ...], Meta(description="the changes that a mutating policy would make")
    ] = ()
    template_of: Annotated[str, Meta(description="kind of the workload, if the finding is in its Pod template")] = ""
    dependent: Annotated[
        NameDocument | None, Meta(description="the object with the finding, if the audited object only owns it")
    ] = None
    related: Annotated[tuple[NameDocument, ...], Meta(description="other objects with the same cause")] = ()


class AllocatedDocument(msgspec.Struct, frozen=True):
    """GPUs that are allocated to the Pods of an object."""

    resource: str
    model: str
    gpus: Gpus
    usd_per_hour: Usd | None


class ObjectDocument(msgspec.Struct, frozen=True):
    """A top-level owner with its Pods."""

    object: NameDocument
    action: ActionName
    uid: str = ""
    pods: int = 0
    allocated: tuple[AllocatedDocument, ...] = ()
    findings: tuple[FindingDocument, ...] = ()
    skipped: Annotated[dict[str, str], Meta(description="policy -> why it was not evaluated")] = {}


class NotEvaluatedDocument(msgspec.Struct, frozen=True):
    """A kind or object that was not evaluated; `objects` is null if the number is unknown."""

    what: str
    reason: str
    objects: int | None = None


class UnboundedDocument(msgspec.Struct, frozen=True):
    """An object whose GPUs have no limit; `usd_per_hour` is null if its worst-case cost is unknown."""

    object: NameDocument
    reason: str
    usd_per_hour: Usd | None


class WastedDocument(msgspec.Struct, frozen=True):
    """GPUs that no Pod can use because of the Pods that run beside them."""

    object: NameDocument
    reason: str
    gpus: Gpus
    usd_per_hour: Usd | None


class PoolDocument(msgspec.Struct, frozen=True):
    """The GPUs of one NodePool by instance type."""

    node_pool: str
    instance_type: str
    nodes: int
    gpus: Gpus
    allocated: Gpus
    usd_per_hour: Usd | None


class CostDocument(msgspec.Struct, frozen=True):
    """The cost of GPUs; docs/audit.md defines each figure."""

    prices: Annotated[str, Meta(description="source, region and date of the prices")]
    at_risk: Usd
    allocated: Usd
    idle: Usd
    unbounded: tuple[UnboundedDocument, ...] = ()
    wasted: tuple[WastedDocument, ...] = ()
    pools: tuple[PoolDocument, ...] = ()
    unpriced_gpus: Gpus = 0.0


class ClusterDocument(msgspec.Struct, frozen=True):
    """The audited cluster or dump, and the user of the audit."""

    name: str
    version: str = ""
    user: str = ""


class SummaryDocument(msgspec.Struct, frozen=True):
    """The number of objects by action; each object counts once, with its worst finding."""

    deny: int
    mutate: int
    warn: int
    record: int
    allow: int


class AuditDocument(msgspec.Struct, frozen=True, tag_field="schema", tag=SCHEMA):
    """One audit of a cluster or a dump by gpugate."""

    gpugate: Annotated[str, Meta(description="version of gpugate that wrote the document")]
    cluster: ClusterDocument
    time: Annotated[dt.datetime, Meta(tz=True)]
    generation: Annotated[str, Meta(description="generation of the policy file")]
    target: Annotated[str, Meta(description="target versions of Kubernetes, Karpenter and KEDA")]
    coverage: Annotated[float, Meta(ge=0, le=1, description="evaluated share of what should be evaluated")]
    summary: SummaryDocument
    counts: Annotated[dict[str, int], Meta(description="kind -> number of objects that were read")]
    objects: Annotated[
        tuple[ObjectDocument, ...],
        Meta(description="worst first; objects without findings only with --include-passed"),
    ]
    not_evaluated: tuple[NotEvaluatedDocument, ...] = ()
    cost: CostDocument | None = None
    expired: Annotated[tuple[str, ...], Meta(description="expired exemptions")] = ()
    unused: Annotated[tuple[str, ...], Meta(description="exemptions that matched no finding")] = ()
    remarks: tuple[str, ...] = ()
    anonymized: Annotated[bool, Meta(description="whether names are pseudonyms")] = False


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **msgspec.json.schema(AuditDocument),
    }
