"""Which requests the rules of a webhook entry are about, one by one, so that entries can be compared however they group them.

Source: `k8s.io/apiserver` pkg/admission/plugin/webhook/predicates/rules/rules.go and `k8s.io/api` admissionregistration/v1
types.go, v0.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Object: TypeAlias = "Mapping[str, Any]"  # Any: the JSON edge

_ANY: Final = "*"
# What the API server fills in where nothing is written.
DEFAULT_MATCH_POLICY: Final = "Equivalent"


class Sent(NamedTuple):
    """A sort of request; each part may be `*`, `resource` as rules write it: `pods`, `pods/status`, `*/*`."""

    group: str
    version: str
    resource: str
    operation: str
    scope: str

    @property
    def name(self) -> str:
        """The resource with its group, as `kubectl api-resources` has it."""
        plural, slash, subresource = self.resource.partition("/")
        return f"{plural}.{self.group}{slash}{subresource}" if self.group else self.resource


def sent(entry: Object) -> Iterator[Sent]:
    """Yield what the rules of an entry send."""
    for rule in entry.get("rules") or ():
        scope = rule.get("scope") or _ANY
        for group in rule.get("apiGroups") or ():
            for version in rule.get("apiVersions") or ():
                for resource in rule.get("resources") or ():
                    for operation in rule.get("operations") or ():
                        yield Sent(group, version, resource, operation, scope)


def covers(live: Sent, wanted: Sent, match_policy: str) -> bool:
    """Tell whether a rule sends what is wanted.

    With `Equivalent` a rule for one version of a resource is sent requests in every other, converted.
    """
    return (
        live.group in {_ANY, wanted.group}
        and live.operation in {_ANY, wanted.operation}
        and live.scope in {_ANY, wanted.scope}
        and (match_policy == DEFAULT_MATCH_POLICY or live.version in {_ANY, wanted.version})
        and _covers_resource(live.resource, wanted.resource)
    )


def _covers_resource(live: str, wanted: str) -> bool:
    plural, _, subresource = wanted.partition("/")
    of, _, part = live.partition("/")
    return of in {_ANY, plural} and (part == subresource or (part == _ANY and bool(subresource)) or live == "*/*")
