"""The answer of `gpugate why` as JSON, `gpugate.dev/why/v1`; its JSON schema is made from these records.

Within a version, members are only added; readers ignore unknown members.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gpugate.policies.sdk.launch_failures import Term
from gpugate.webhook.report.plain import plain_json

SCHEMA: Final = "gpugate.dev/why/v1"


class PoolAnswer(msgspec.Struct, frozen=True):
    """What a NodePool can do for a Pod."""

    name: str
    launchable: Annotated[
        Literal["yes", "maybe", "no"],
        Meta(description="whether it can launch a node for the Pod; maybe if gpugate does not know"),
    ]
    instance_types: Annotated[int, Meta(description="number of EC2 instance types that fit; 0 if they are unknown")]
    term: Annotated[Term | Literal[""], Meta(description="the first term that fails; empty if none does")]
    reason: Annotated[str, Meta(description="why it cannot launch a node, or why this is not known")]
    change: Annotated[str, Meta(description="the smallest change; empty if none is known or necessary")]


class PodAnswer(msgspec.Struct, frozen=True):
    """A Pod or Pod template, and what each NodePool can do for it."""

    pod: Annotated[str, Meta(description="kind, namespace and name, and the path of the template if there are several")]
    launchable: Annotated[bool, Meta(description="whether any NodePool can launch a node for it, or may")]
    requests: Annotated[dict[str, str], Meta(description="resource -> amount, as the scheduler counts it")]
    pools: tuple[PoolAnswer, ...]


class WhyReport(msgspec.Struct, frozen=True, tag_field="schema", tag=SCHEMA):
    """The NodePools that can launch a node for some Pods."""

    pods: tuple[PodAnswer, ...]


def render(report: WhyReport) -> str:
    """Write the document, indented."""
    return plain_json(msgspec.json.format(msgspec.json.encode(report), indent=2).decode()) + "\n"


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **msgspec.json.schema(WhyReport),
    }
