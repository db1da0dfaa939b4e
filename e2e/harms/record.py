"""Writes down which harms were seen, for the pages of their policies."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

import tools
from gpugate.policies.data.harms_seen import SeenHarm, load_harms_seen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harms.harm import Seen

_ROOT: Final = Path(__file__).parents[2]
FILE: Final = _ROOT / "policies" / "data" / "harms_seen.json"


def record(seen: Iterable[Seen]) -> None:
    """Put what was seen in the place of what these tests have seen before; what tests that are gone have seen goes."""
    found = {harm.test: harm for harm in load_harms_seen() if (_ROOT / harm.test.partition("::")[0]).exists()}
    found.update({harm.test: harm for harm in map(_recorded, seen)})
    ordered = sorted(found.values(), key=lambda harm: (harm.policy, harm.test))
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n")


def _recorded(seen: Seen) -> SeenHarm:
    controllers = {"Kubernetes": tools.KUBERNETES, "Karpenter": tools.KARPENTER_VERSION}
    if seen.policy.startswith("scaling/"):
        controllers["KEDA"] = tools.KEDA_VERSION
    return SeenHarm(
        policy=seen.policy,
        test=seen.test,
        happened=seen.happened,
        seconds=round(seen.seconds),
        prevented=seen.prevented,
        gpu_hours=seen.gpu_hours,
        dollars=seen.dollars,
        controllers=tuple(f"{name} {version}" for name, version in controllers.items()),
        date=dt.datetime.now(dt.UTC).date().isoformat(),
    )
