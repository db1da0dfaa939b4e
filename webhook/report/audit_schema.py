"""The JSON document of an audit, `gpugate.dev/audit/v1`.

Within a version fields are added, never renamed, removed or given another meaning; readers ignore what they do not know.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

SCHEMA: Final = "gpugate.dev/audit/v1"

ActionName = Literal["block", "mutate", "warn", "record", "comply"]
StanceName = Literal["off", "audit", "warn", "enforce"]
Usd = Annotated[float, Meta(description="US dollars per hour")]
Gpus = Annotated[float, Meta(description="GPUs; a MIG slice is its share of one")]


class PatchDocument(msgspec.Struct, frozen=True):
    """A change of one place; missing parents are made."""

    op: Literal["set", "append", "remove"]
    path: Annotated[tuple[str | int, ...], Meta(description="keys and list indices from the object's root")]
    value: Any
    reason: str


class FixDocument(msgspec.Struct, frozen=True):
    """How a finding can be mended: by patches, or by writing other objects instead."""

    safe: Annotated[bool, Meta(description="whether neither scheduling nor cost change beyond the finding")]
    patches: tuple[PatchDocument, ...] | None = None
    objects: tuple[dict[str, Any], ...] | None = None


class NameDocument(msgspec.Struct, frozen=True, rename={"api_version": "apiVersion"}):
    """Which object."""

    api_version: str
    kind: str
    namespace: str
    name: str


class FindingDocument(msgspec.Struct, frozen=True):
    """What one policy found in one object."""

    policy: Annotated[str, Meta(description="its id; empty for a field of a type that the API server refuses")]
    path: Annotated[str, Meta(description="the field; empty for the object as a whole")]
    message: str
    stance: Annotated[StanceName, Meta(description="what the finding would cost")]
    action: Annotated[ActionName, Meta(description="what it would do to the object if that were created now")]
    why: str = ""
    hint: str = ""
    note: Annotated[str, Meta(description="why it costs less than the policy's mode, such as an exemption")] = ""
    fix: FixDocument | None = None
    patches: Annotated[tuple[PatchDocument, ...], Meta(description="what the policy itself would change")] = ()
    template_of: Annotated[str, Meta(description="the workload's kind when its Pod template was judged")] = ""
    made: Annotated[NameDocument | None, Meta(description="what has this, where the object only made that")] = None
    related: Annotated[tuple[NameDocument, ...], Meta(description="other objects that have a part in the cause")] = ()


class HeldDocument(msgspec.Struct, frozen=True):
    """GPUs that running Pods of an object hold."""

    resource: str
    model: str
    gpus: Gpus
    usd_per_hour: Usd | None


class ObjectDocument(msgspec.Struct, frozen=True):
    """One object that people wrote, with its Pods."""

    object: NameDocument
    action: ActionName
    uid: str = ""
    pods: int = 0
    held: tuple[HeldDocument, ...] = ()
    findings: tuple[FindingDocument, ...] = ()
    skipped: Annotated[dict[str, str], Meta(description="policy -> why it could not look")] = {}


class NotEvaluatedDocument(msgspec.Struct, frozen=True):
    """What could not be looked at; how many objects where that is known."""

    what: str
    reason: str
    objects: int | None = None


class UnboundedDocument(msgspec.Struct, frozen=True):
    """Something that can grow without a limit; null: nobody can say what it costs at worst."""

    object: NameDocument
    reason: str
    usd_per_hour: Usd | None


class WastedDocument(msgspec.Struct, frozen=True):
    """GPUs that nobody can use because of the shape of what holds the others of their node."""

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
    held: Gpus
    usd_per_hour: Usd | None


class CostDocument(msgspec.Struct, frozen=True):
    """GPU money; what each figure means is in docs/audit.md."""

    prices: Annotated[str, Meta(description="which prices: their day and place")]
    at_risk: Usd
    held: Usd
    idle: Usd
    unbounded: tuple[UnboundedDocument, ...] = ()
    wasted: tuple[WastedDocument, ...] = ()
    pools: tuple[PoolDocument, ...] = ()
    unpriced_gpus: Gpus = 0.0


class ClusterDocument(msgspec.Struct, frozen=True):
    """What was audited, and as whom."""

    name: str
    version: str = ""
    user: str = ""


class SummaryDocument(msgspec.Struct, frozen=True):
    """How many objects would be ..., each counted once, by the worst that was found in it."""

    block: int
    mutate: int
    warn: int
    record: int
    comply: int


class AuditDocument(msgspec.Struct, frozen=True, tag_field="schema", tag=SCHEMA):
    """One audit of a cluster or a dump by gpugate."""

    gpugate: Annotated[str, Meta(description="the version that wrote it")]
    cluster: ClusterDocument
    time: Annotated[dt.datetime, Meta(tz=True)]
    generation: Annotated[str, Meta(description="which policy configuration was used")]
    target: Annotated[str, Meta(description="the versions of Kubernetes, Karpenter and KEDA assumed")]
    coverage: Annotated[float, Meta(ge=0, le=1, description="the share of what should be evaluated that was")]
    summary: SummaryDocument
    counts: Annotated[dict[str, int], Meta(description="kind -> how many objects were read")]
    objects: Annotated[
        tuple[ObjectDocument, ...],
        Meta(description="worst first; those in which nothing was found only with --include-passed"),
    ]
    not_evaluated: tuple[NotEvaluatedDocument, ...] = ()
    cost: CostDocument | None = None
    expired: Annotated[tuple[str, ...], Meta(description="exemptions that are over")] = ()
    unused: Annotated[tuple[str, ...], Meta(description="exemptions that match nothing")] = ()
    remarks: tuple[str, ...] = ()
    anonymized: Annotated[bool, Meta(description="whether names are pseudonyms")] = False


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **msgspec.json.schema(AuditDocument),
    }
