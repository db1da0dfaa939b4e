"""The names of claims in a Pod, and of the templates they are made from."""

from __future__ import annotations

from typing import Final

_DNS_LABEL: Final = 63
_KEPT: Final = 50


def template_name(prefix: str, profile: str) -> str:
    """Name the ResourceClaimTemplate of a profile: `mig-` and `1g.10gb+me` are `mig-1g-10gb-me`."""
    return prefix + _dashed(profile)


def claim_names(container: str, profile: str, count: int) -> tuple[str, ...]:
    """Name the claims of one container, one for each slice; each is a DNS label, as `spec.resourceClaims` needs.

    A name that is too long keeps its start and ends in the start of its hash.
    """
    name = f"{container}-mig-{_dashed(profile)}"
    names = (name,) if count == 1 else tuple(f"{name}-{index}" for index in range(count))
    return tuple(_shortened(name) for name in names)


def _dashed(profile: str) -> str:
    return profile.replace(".", "-").replace("+", "-")


def _shortened(name: str) -> str:
    if len(name) <= _DNS_LABEL:
        return name
    import hashlib  # noqa: PLC0415 -- long names are rare, and it costs start-up time

    return f"{name[:_KEPT]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
