"""Read the Kubernetes objects in a Terraform plan or state, as JSON.

Source: Terraform 1.13 (`terraform show -json`, format 1.2).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests.bounded_file import MAX_DEPTH
from gpugate.webhook.manifests.documents import Document, Span, read_text
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Json

# Resources whose planned values hold an object, or the text of one.
_PLANNED: Final = {
    "kubectl_manifest": "yaml_body",
    "kubernetes_manifest": "manifest",
    "kustomization_resource": "manifest",
    "helm_release": "manifest",  # where the provider has `experiments { manifest = true }`
}
_RELEASE: Final = "helm_release"
_UNKNOWN: Final = "${known after apply}"
_MOST_MODULES: Final = 10_000


def is_plan(value: Json) -> bool:
    """Tell what `terraform show -json` writes of a plan or a state."""
    return (
        isinstance(value, dict) and "terraform_version" in value and bool({"planned_values", "values"} & value.keys())
    )


def plan_documents(plan: Document) -> Iterator[Document | Problem]:
    """Yield the objects that a plan creates or keeps, as they will be; a state holds those that are there.

    Each is placed at the line of its resource. Values that are known only after apply are a text that says so.
    """
    value = _Lookup(plan.value)
    unknown = {change["address"].text: change["change"]["after_unknown"] for change in value["resource_changes"].items}
    lines = _addresses(plan)
    for resource in _resources(value["planned_values"] or value["values"]):
        kind, address, values = resource["type"].text, resource["address"].text, resource["values"]
        if kind not in _PLANNED or resource["mode"].text == "data":
            continue
        span = Span(lines.get(address, plan.first_line), 1, 2)
        resources = values[_PLANNED[kind]].value
        if isinstance(resources, str):
            for part in read_text(plan.source, resources):
                if isinstance(part, Problem):
                    wrong = f"{address}: {part.message}"
                    yield Problem(plan.source, span.line, 1, wrong, part.remedy, part.warning)
                    continue
                # A release is an object with a member for each of its objects.
                members = part.value.values() if kind == _RELEASE and isinstance(part.value, dict) else [part.value]
                for member in members:
                    yield replace(part, text="", first_line=span.line, value=member, places={(): span}, derived=True)
        elif isinstance(resources, dict):
            late = unknown[address][_PLANNED[kind]].value if address in unknown else None
            yield Document(
                plan.source, "", span.line, _late(resources, late, 0), plan.start, places={(): span}, derived=True
            )
        elif address in unknown and unknown[address][_PLANNED[kind]].value is True:
            wrong = f"{address}: {_PLANNED[kind]} is known only after apply"
            yield Problem(
                plan.source, span.line, 1, wrong, "check the cluster after apply, with `gpugate audit`", warning=True
            )


class _Lookup:
    """A JSON value whose members can be looked up whatever it is."""

    def __init__(self, value: Json) -> None:
        self.value = value

    def __getitem__(self, key: str) -> _Lookup:
        return _Lookup(self.value.get(key) if isinstance(self.value, dict) else None)

    def __bool__(self) -> bool:
        return bool(self.value)

    @property
    def items(self) -> list[_Lookup]:
        """The items of a list; none of anything else."""
        return [_Lookup(element) for element in self.value] if isinstance(self.value, list) else []

    @property
    def text(self) -> str:
        """A string; empty for anything else."""
        return self.value if isinstance(self.value, str) else ""


def _resources(values: _Lookup) -> Iterator[_Lookup]:
    """Yield the resources of all modules."""
    waiting = [values["root_module"]]
    count = 0
    while waiting and count < _MOST_MODULES:
        module = waiting.pop(0)
        count += 1
        yield from module["resources"].items
        waiting += module["child_modules"].items


_ADDRESS: Final = re.compile(r'"address": ?("(?:[^"\\\n]|\\.)*")')


def _addresses(plan: Document) -> dict[str, int]:
    """Return the line on which each address is first."""
    import json  # noqa: PLC0415 -- few files are plans

    counts: dict[str, int] = {}
    for number, line in enumerate(plan.text.splitlines(), plan.first_line):
        for match in _ADDRESS.finditer(line):
            try:
                counts.setdefault(json.loads(match[1]), number)
            except ValueError:
                continue
    return counts


def _late(value: Json, unknown: Json, depth: int) -> Json:
    """Return a planned value with a text in the place of all that is known only after apply."""
    if unknown is True:
        return _UNKNOWN
    if depth > MAX_DEPTH:
        return value
    if isinstance(unknown, dict) and isinstance(value, dict):
        keys = dict.fromkeys([*value, *(key for key, late in unknown.items() if late)])
        return {key: _late(value.get(key), unknown.get(key), depth + 1) for key in keys}
    if isinstance(unknown, list) and isinstance(value, list):
        length = max(len(value), len(unknown))
        pairs = [
            (value[i] if i < len(value) else None, unknown[i] if i < len(unknown) else None) for i in range(length)
        ]
        return [_late(element, late, depth + 1) for element, late in pairs]
    return value
