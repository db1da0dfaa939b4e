"""Which resources of the API server the rules in force judge: in which versions, on which operations, of which objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.sdk import objects
from gpugate.policies.sdk.concerns import EVERY_OBJECT, any_of
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import TEMPLATES, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpugate.policies.engine.ruleset import Bound, Rule, Ruleset
    from gpugate.policies.sdk.concerns import Concern
    from gpugate.policies.sdk.objects import Operation
    from gpugate.policies.sdk.policy import Handler


@dataclass(slots=True)
class Judged:
    """A resource, with its subresources, that is judged.

    Attributes:
        group: its API group.
        plural: its name in URLs.
        namespaced: whether its objects are in namespaces.
        requests: subresource (empty for the object itself), versions -> the operations that are judged.
        concern: what holds for every object that can interest a policy.
        enforced: what holds for every object of which a request can be denied or mutated at admission, which a finding
            in a Pod template does not do.
        advised: what holds for every object that can get a warning or a record from a policy that does neither.
    """

    group: str
    plural: str
    namespaced: bool
    requests: dict[tuple[str, tuple[str, ...]], frozenset[Operation]] = field(default_factory=dict)
    concern: Concern = field(default_factory=any_of)
    enforced: Concern = field(default_factory=any_of)
    advised: Concern = field(default_factory=any_of)

    def add(self, kind: Kind, operations: frozenset[Operation], concern: Concern, *, enforced: bool) -> None:
        """Take in that requests about a kind are judged too."""
        key = (kind.subresource, kind.versions)
        self.requests[key] = self.requests.get(key, frozenset()) | operations
        self.concern = any_of(self.concern, concern)
        if enforced:
            self.enforced = any_of(self.enforced, concern)
        else:
            self.advised = any_of(self.advised, concern)


def mutated(ruleset: Ruleset) -> Sequence[Judged]:
    """Return what mutations are about; never workloads, whose Pods are mutated when they come."""
    return _judged(_bound(ruleset, mutating=True), frozenset())


def validated(ruleset: Ruleset) -> Sequence[Judged]:
    """Return what checks are about; where Pods are, so is every workload with a Pod template, which gets warnings."""
    bound = _bound(ruleset, mutating=False)
    of_pods = [handler.operations for _, handler in bound if objects.POD in handler.kinds]
    return _judged(bound, frozenset().union(*of_pods))


def _bound(ruleset: Ruleset, *, mutating: bool) -> Sequence[Bound]:
    return [(r, handler) for r in ruleset.rules for handler in r.policy.handlers if handler.mutates is mutating]


def _judged(bound: Iterable[Bound], on_workloads: frozenset[Operation]) -> Sequence[Judged]:
    found: dict[tuple[str, str], Judged] = {}

    def add(kind: Kind, operations: frozenset[Operation], concern: Concern, *, enforced: bool) -> None:
        judged = found.setdefault((kind.group, kind.plural), Judged(kind.group, kind.plural, kind.namespaced))
        judged.add(kind, operations, concern, enforced=enforced)

    for rule, handler in bound:
        for kind in handler.kinds:
            add(kind, handler.operations, handler.concerns, enforced=_enforces(rule, handler))
    for group, name in TEMPLATES if on_workloads else ():
        add(workload_kind(group, name), on_workloads, EVERY_OBJECT, enforced=False)
    return [found[key] for key in sorted(found)]


def _enforces(rule: Rule, handler: Handler[Any]) -> bool:  # Any: the parameters do not matter
    return handler.at_most is Stance.ENFORCE and Stance.ENFORCE in {rule.mode, *rule.namespace_modes.values()}


_KNOWN: Final = {(kind.group, kind.name): kind for kind in vars(objects).values() if isinstance(kind, Kind)}


def workload_kind(group: str, name: str) -> Kind:
    """Return the kind of a workload; one that nobody judges otherwise is judged in every version.

    They all form their plural in the same way.
    """
    return _KNOWN.get((group, name)) or Kind(group, ("*",), name, f"{name.lower()}s")
