"""The files of a new policy that works: in Python with a denied and an allowed example beside it, in CEL with both inside."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import near_misses
from gpugate.policies.sdk import SDK, objects
from gpugate.policies.sdk.objects import Kind
from gpugate.webhook.own_policies.sources import OwnPolicyError

if TYPE_CHECKING:
    from collections.abc import Mapping

_ID: Final = re.compile(r"(?P<family>[a-z][a-z0-9]*(?:-[a-z0-9]+)*)/(?P<name>[a-z][a-z0-9]*(?:-[a-z0-9]+)*)", re.ASCII)

_POLICY: Final = '''"""{kind} with one sentence on the bad pattern.

## Why is this bad?

What happens, to whom, and what it costs.

## Instead

What to write.

## Sources

Where each fact was read, with its version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.sdk.findings import Skip, Violation
from gpugate.policies.sdk.objects import {constant}
from gpugate.policies.sdk.policy import AnyContext, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
{sdk}

@validates({constant})
def check(subject: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Find the bad pattern."""
    name = subject["metadata", "name"]
    if name.text == "bad":
        yield Violation(name.path, f"{{ctx.request.kind.kind}} is called bad", hint="Choose another name")
'''

_EXAMPLE: Final = """# {article} {kind} {shows}.
apiVersion: {api_version}
kind: {kind}
metadata:
  name: {name}
"""

_DOCUMENT: Final = """\
# The keys are described in docs/reference/cel-policy.md, the variables and functions in docs/cel-policies.md.
apiVersion: gpugate.dev/v1
kind: Policy
id: {policy_id}
title: {kind} with one sentence on the bad pattern
why: What happens, to whom, and what it costs.
instead: What to write.
mode: enforce
match:
  kinds: [{matched}]
validations:
  - expression: object.metadata.name != 'bad'
    message: is called bad
    path: metadata.name
    fix: Choose another name.
examples:
  allowed:
    - apiVersion: {api_version}
      kind: {kind}
      metadata: {{name: good}}
  denied:
    - apiVersion: {api_version}
      kind: {kind}
      metadata: {{name: bad}}
"""


def kinds() -> Mapping[str, Kind]:
    """Return the known kinds by the names of their constants."""
    return {
        name: value for name, value in vars(objects).items() if isinstance(value, Kind) and not name.startswith("_")
    }


def constant_of(kind: str) -> str:
    """Return the constant of a kind; of several with one name that of the current API.

    Raises:
        OwnPolicyError: the kind is not known.
    """
    constants: dict[str, str] = {}
    for constant, known in kinds().items():
        constants.setdefault(known.name, constant)
    if kind not in constants:
        near = near_misses(kind, constants)
        meant = f"did you mean {near[0]}?" if near else f"write one of {', '.join(sorted(constants))}"
        raise OwnPolicyError(f"--kind {kind}: unknown kind; {meant}")
    return constants[kind]


def files_of(policy_id: str, constant: str, *, is_own: bool) -> dict[str, str]:
    """Return the files of a new policy in Python: path relative to the directory of policies -> text.

    Args:
        policy_id: the id, such as `acme/no-h100-in-dev`.
        constant: the name of the kind in `gpugate.policies.sdk.objects`.
        is_own: whether the policy is outside the library, and so states the version of the interface.

    Raises:
        OwnPolicyError: the id is invalid.
    """
    family, module = _names(policy_id)
    kind = kinds()[constant]
    shared = {
        "article": "An" if kind.name[0] in "AEIOU" else "A",
        "kind": kind.name,
        "api_version": _api_version(kind),
    }
    bad = _EXAMPLE.format(shows="that has the bad pattern", name=f"bad  # expect: {policy_id}", **shared)
    good = _EXAMPLE.format(shows="that does it right", name="good", **shared)
    sdk = f"\n# The version of the interface that this file is written for.\nSDK = {SDK}\n" if is_own else ""
    return {
        f"{family}/{module}.py": _POLICY.format(kind=kind.name, constant=constant, sdk=sdk),
        f"{family}/examples/{module}/bad-first.yaml": bad,
        f"{family}/examples/{module}/good-first.yaml": good if not is_own else f"{good.rstrip()}  # expect: nothing\n",
    }


def document_of(policy_id: str, constant: str) -> dict[str, str]:
    """Return the file of a new policy in CEL: path relative to the directory of policies -> text.

    Args:
        policy_id: the id, such as `acme/no-h100-in-dev`.
        constant: the name of the kind in `gpugate.policies.sdk.objects`.

    Raises:
        OwnPolicyError: the id is invalid.
    """
    family, name = _names(policy_id)
    kind = kinds()[constant]
    version = _api_version(kind)
    groups = {other.group for other in kinds().values() if other.name == kind.name}
    # A bare name means the kind of one group.
    full = f"{{apiVersion: {version}, kind: {kind.name}, plural: {kind.plural}{_scope(kind)}}}"
    matched = kind.name if len(groups) == 1 else full
    document = _DOCUMENT.format(policy_id=policy_id, kind=kind.name, api_version=version, matched=matched)
    return {f"{family}/{name}.yaml": document}


def _names(policy_id: str) -> tuple[str, str]:
    """Return the folder and the name of the file of a policy.

    Raises:
        OwnPolicyError: the id is invalid.
    """
    parts = _ID.fullmatch(policy_id)
    if parts is None:
        raise OwnPolicyError(
            f"{policy_id}: invalid id: write ORGANISATION/NAME-OF-THE-BAD-PATTERN, such as acme/no-h100-in-dev"
        )
    return parts["family"].replace("-", "_"), parts["name"].replace("-", "_")


def _scope(kind: Kind) -> str:
    return "" if kind.namespaced else ", namespaced: false"


def _api_version(kind: Kind) -> str:
    return f"{kind.group}/{kind.versions[-1]}".lstrip("/")
