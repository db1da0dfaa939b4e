"""The requests in a ResourceClaim or ResourceClaimTemplate, in every version of `resource.k8s.io`.

A request of v1alpha3 or v1beta1 holds its members itself, one of v1beta2 or v1 under `exactly`. Instead it may list
alternatives under `firstAvailable`, which hold theirs themselves in every version.

Sources: `kubernetes/api` v0.36 `resource/v1`, `resource/v1beta2`, `resource/v1beta1`; v0.33 `resource/v1alpha3`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

# What a request says of the devices it wants; only one that is not an alternative has `adminAccess`.
MEMBERS: Final = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
)
# Versions in which a request holds its members itself.
INLINE_VERSIONS: Final = frozenset({"v1alpha3", "v1beta1"})

_MEMBERS: Final = frozenset(MEMBERS)
# The API server refuses a longer CEL expression (`resource/v1` types.go CELSelectorExpressionMaxLength, v0.36).
_LONGEST_CEL: Final = 10 * 1024


def claim_spec_of(obj: Field, kind: str) -> Field:
    """Return the spec of a ResourceClaim, or of the claims that a ResourceClaimTemplate makes."""
    return obj["spec", "spec"] if kind == "ResourceClaimTemplate" else obj["spec"]


def device_requests(spec: Field) -> Iterator[Field]:
    """Yield the requests in the spec of a claim."""
    yield from spec["devices", "requests"]


def alternatives(request: Field) -> tuple[Field, ...]:
    """Return the objects that hold the members of a request, in the order in which the scheduler tries them.

    All of them are returned, wherever they stand, also where the API server would take only one for this version.
    """
    nested = tuple(ask for ask in (request["exactly"], *request["firstAvailable"]) if ask)
    return (request, *nested) if own_members(request) else nested


def readable_cel(expression: Field) -> str:
    """Return a selector's CEL expression; empty where it is longer than the API server accepts."""
    text = expression.text
    return text if len(text) <= _LONGEST_CEL else ""


def own_members(request: Field) -> tuple[str, ...]:
    """Return those of `MEMBERS` that a request holds itself.

    To a request of v1beta1 with alternatives the API server adds `deviceClassName: ""` (`kubernetes/api` v0.36
    `resource/v1beta1/types.go`: no omitempty), which nobody wrote.
    """
    if _MEMBERS.isdisjoint(request.mapping):
        return ()
    added = "deviceClassName" if request["firstAvailable"].value and not request["deviceClassName"].text else ""
    return tuple(name for name in MEMBERS if request[name] and name != added)
