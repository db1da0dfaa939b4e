"""Writes the table of all policies."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.policies.sdk.policy import Policy

_HEAD = """# Policies

Written by `make generate` from the policy files. `gpugate explain ID` prints the whole of one.
Mode is the shipped one; `policy.yaml` changes it.
"""


def policy_index(catalog: Iterable[Policy]) -> str:
    """Return the page, in Markdown: a table for each family, in the order of evaluation."""
    lines = [_HEAD]
    for family, policies in groupby(catalog, key=lambda policy: policy.id.partition("/")[0]):
        lines += [f"## {family}\n", "| policy | what it finds | judges | does | mode |", "|---|---|---|---|---|"]
        lines += [_row(policy) for policy in policies]
        lines.append("")
    return "\n".join(lines)


def _row(policy: Policy) -> str:
    kinds = ", ".join(dict.fromkeys(kind.name for kind in policy.kinds))
    does = " and ".join(dict.fromkeys("mutates" if handler.mutates else "validates" for handler in policy.handlers))
    return (
        f"| [`{policy.id}`](../docs/policies/{policy.id}.md) | {policy.title} | {kinds} | {does} | {policy.mode.word} |"
    )
