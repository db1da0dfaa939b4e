"""Which other objects the rules in force look up, cut down to the fields that they read of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpugate.policies.engine.ruleset import Rule
    from gpugate.policies.sdk.facts import Need
    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.objects import GroupVersionKind, Kind, Request

# A field and what is read below it; everything, where that is empty.
_Fields: TypeAlias = "dict[str, _Fields]"
_ALWAYS = ("metadata.name", "metadata.namespace")


class Needs:
    """What the rules need to know of other objects, so that nothing else is kept of them."""

    def __init__(self, rules: Iterable[Rule], also: Iterable[Need] = ()) -> None:
        """Add up what rules look up; `also` is what whoever asks looks up beside them."""
        self._fields: dict[Kind, _Fields] = {}
        of_rules = (need for rule in rules for handler in rule.policy.handlers for need in handler.needs)
        for need in (*of_rules, *also):
            _add(self._fields.setdefault(need.kind, {}), (*_ALWAYS, *need.fields))
        self._by_type: dict[GroupVersionKind, _Fields | None] = {}

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Every kind that a rule looks up."""
        return tuple(self._fields)

    def of(self, kind: GroupVersionKind) -> Mapping[str, object] | None:
        """Return what is read of objects of a type; None when nothing is."""
        if kind not in self._by_type:
            fitting = [fields for known, fields in self._fields.items() if known.covers(kind)]
            self._by_type[kind] = fitting[0] if fitting else None
        return self._by_type[kind]

    def project(self, request: Request) -> Request | None:
        """Return a request whose object holds only what is read of it; None when nothing is."""
        self.of(request.kind)
        fields = self._by_type[request.kind]
        if fields is None or request.object is None:
            return None
        kept = _cut(request.object, fields)
        return replace(request, object=kept if isinstance(kept, dict) else None, old_object=None)


def _add(fields: _Fields, paths: Iterable[str]) -> None:
    for path in paths:
        below = fields
        *above, last = path.split(".")
        for part in above:
            if part in below and not below[part]:
                break  # all that is below it is read anyway
            below = below.setdefault(part, {})
        else:
            below[last] = {}


def _cut(value: Json, fields: _Fields) -> Json:
    if not fields:
        return value
    if isinstance(value, list):
        return [_cut(element, fields) for element in value]
    if not isinstance(value, dict):
        return value
    return {key: _cut(value[key], below) for key, below in fields.items() if key in value}
