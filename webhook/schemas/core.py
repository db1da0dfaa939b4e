"""Validate objects of Kubernetes itself before an API server sees them: unknown fields, wrong types, CEL syntax, claims.

Field names and types are those that strict decoding into the types of a release accepts; a null stands for an absent field.
Pod templates in custom resources are held against the same table.

Sources: apimachinery v0.36 `pkg/runtime/serializer/json` (strict decoding), `sigs.k8s.io/json`; kubernetes v1.36
`pkg/apis/core/validation/validation.go` (validateResourceClaimNames), `pkg/apis/resource/validation/validation.go`
(validateCELSelector).
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.sdk import quantity
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.gpu_demand import alternatives, claim_spec_of, device_requests, readable_cel
from gpugate.policies.sdk.platform import at_least
from gpugate.policies.sdk.pod_templates import TEMPLATES, nested, pod_templates
from gpugate.webhook.schemas import tables, wording
from gpugate.webhook.schemas.tables import CORE_KINDS
from gpugate.webhook.schemas.wording import SchemaProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.objects import GroupVersionKind
    from gpugate.policies.sdk.platform import Target
    from gpugate.webhook.schemas.table import Node

# A hostile object may have any number of unknown fields, and a suggestion for each costs a comparison with all known ones.
_MOST: Final = 100
_TEMPLATE: Final = "v1 PodTemplateSpec"


class CoreObjects:
    """Checks objects against the table of the core kinds, which is read when the first of them comes.

    Args:
        target: the releases assumed.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._nodes: Sequence[Node] = ()
        # Of each of the releases around the target: `apiVersion kind` -> index of the schema.
        self._roots: Sequence[Mapping[str, int]] = ()
        self._newer = False

    def problems(self, kind: GroupVersionKind, obj: Mapping[str, Json] | None) -> Iterator[SchemaProblem]:
        """Yield what an API server rejects in an object, and in the objects that it holds; the first 100 of each."""
        root = Field(dict(obj or {}))
        yield from islice(self._whole(root, kind.api_version, kind.kind), _MOST)
        for inner in islice(nested(kind.group, kind.kind, root), _MOST):
            yield from islice(self._whole(inner.root, inner.api_version, inner.kind), _MOST)

    def _whole(self, root: Field, api_version: str, kind: str) -> Iterator[SchemaProblem]:
        group = api_version.rpartition("/")[0]
        is_pod = (api_version, kind) == ("v1", "Pod")
        pods = [root] if is_pod else list(pod_templates(group, kind, root))
        if (group, kind) in CORE_KINDS:
            yield from self._decoded(root, f"{api_version} {kind}")
        elif (group, kind) in TEMPLATES and tables.find(group, kind, None) is None:
            # Views of Pods of another shape are no Pod templates.
            for pod in (template for template in pods if type(template) is Field):
                yield from self._decoded(pod, _TEMPLATE)
        for pod in pods:
            yield from _claims(pod)
        for expression in _expressions(root, group, kind):
            yield from _cel(expression)

    def _decoded(self, field: Field, schema: str) -> Iterator[SchemaProblem]:
        """Yield what each of the releases around the target rejects."""
        self._load()
        roots = [by_name[schema] for by_name in self._roots if schema in by_name]
        # A value that the last release accepts has no problem. Without paths, this takes less time to find out.
        if not roots or self._accepts(field.value, roots[-1]):
            return
        *others, last = [list(islice(self._value(field.value, root, field.path), _MOST)) for root in roots]
        for problem in last:
            if all(any(problem.path == rejected.path for rejected in other) for other in others):
                yield problem

    def _load(self) -> None:
        if not self._roots:
            table = tables.read(tables.BUNDLED / tables.CORE)
            self._nodes = table.nodes
            roots_by_release = [
                {name: served.root for name, served in r.served.items()} for r in tables.around(table, self._target)
            ]
            self._roots = roots_by_release[-1:] if roots_by_release[0] == roots_by_release[-1] else roots_by_release
            # A later release may have fields that none of the table has.
            self._newer = not at_least(table.releases[-1].minor, self._target.kubernetes)

    def _accepts(self, value: Any, schema: int) -> bool:
        """Tell whether a value has no unknown field and no value of another type; false where that takes `_value` to say."""
        if value is None:
            return True
        node = self._nodes[schema]
        if not _fits(value, node):
            return False
        if isinstance(value, dict):
            properties, values = node.properties, node.values
            for key, member in value.items():
                child = properties.get(key, values)
                if child is None:
                    if node.preserve or not node.type or self._newer:
                        continue
                    return False
                # Most values are texts, which need no call.
                leaf = self._nodes[child]
                if type(member) is str and leaf.type == "string" and not leaf.quantity:
                    continue
                if not self._accepts(member, child):
                    return False
        elif isinstance(value, list) and node.items is not None:
            items = node.items
            return all(self._accepts(element, items) for element in value)
        return True

    def _value(self, value: Any, schema: int, path: Path) -> Iterator[SchemaProblem]:
        node = self._nodes[schema]
        if value is None:
            return
        if not _fits(value, node):
            if not wording.is_placeholder(value):
                yield wording.of_type(path, value, node)
        elif isinstance(value, dict):
            for key, member in value.items():
                child = node.properties.get(key, node.values)
                if child is not None:
                    yield from self._value(member, child, (*path, key))
                elif not node.preserve and node.type and not self._newer and not wording.is_placeholder(key):
                    yield wording.unknown((*path, key), node, value)[0]
        elif isinstance(value, list) and node.items is not None:
            for index, element in enumerate(value):
                yield from self._value(element, node.items, (*path, index))


def _is_whole(value: Any, most: int) -> bool:
    """Tell whether a value is a whole number from `-most` to below `most`."""
    # YAML becomes JSON first, which writes 1.0 as 1.
    if isinstance(value, float):
        return value.is_integer() and abs(value) < min(most, 2**53)
    return isinstance(value, int) and not isinstance(value, bool) and -most <= value < most


_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}


def _fits(value: Any, node: Node) -> bool:
    if node.quantity:
        return quantity.parse_or_none(value) is not None
    if node.int_or_string:
        return isinstance(value, str) or _is_whole(value, 2**31)
    if node.type == "integer":
        return _is_whole(value, 2**31 if node.format == "int32" else 2**63)
    fits = _TYPES.get(node.type)
    return fits is None or fits(value)


def _claims(pod: Field) -> Iterator[SchemaProblem]:
    """Yield each claim of a container that the Pod does not declare."""
    spec = pod["spec"]
    declared = {claim["name"].text for claim in spec["resourceClaims"]}
    if any(wording.is_placeholder(name) for name in declared):
        return
    for block in ("initContainers", "containers"):
        for container in spec[block]:
            for claim in container["resources", "claims"]:
                name = claim["name"]
                if name.text and name.text not in declared and not wording.is_placeholder(name.text):
                    listed = ", ".join(sorted(declared)) or "none"
                    message = (
                        f'claim "{name.text[:80]}" is not declared in spec.resourceClaims of the Pod ({listed[:200]})'
                    )
                    yield SchemaProblem(
                        name.path, message, "declare it in spec.resourceClaims, or name a declared claim"
                    )


def _expressions(root: Field, group: str, kind: str) -> Iterator[Field]:
    """Yield the CEL expressions of a claim or a device class."""
    if group != "resource.k8s.io" or (group, kind) not in CORE_KINDS:
        return
    asks = [ask for request in device_requests(claim_spec_of(root, kind)) for ask in alternatives(request)]
    for holder in [root["spec"]] if kind == "DeviceClass" else asks:
        yield from (selector["cel", "expression"] for selector in holder["selectors"])


# Syntax that the parser does not know: optional elements, message literals, names in backticks or after a dot.
_BEYOND: Final = re.compile(r"`|[\[{]\?|[A-Za-z0-9_]\s*\{|(?:^|[^A-Za-z0-9_)\]\"'\s])\s*\.[A-Za-z_]")


def _cel(expression: Field) -> Iterator[SchemaProblem]:
    source = readable_cel(expression)
    if not source or _BEYOND.search(source) or wording.is_placeholder(source):
        return
    from gpugate.policies.cel.syntax import ExpressionError, ExpressionLimitError, parse  # noqa: PLC0415 -- few objects have CEL, and it costs start-up time

    try:
        parse(source)
    except ExpressionLimitError:
        return
    except ExpressionError as error:
        message = f"invalid CEL expression: {error}"
        yield SchemaProblem(expression.path, message, "correct the expression; the API server rejects it", whole=True)
