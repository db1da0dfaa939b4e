"""What a verdict says, one thing after the other, in the words of expectations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.report.located import DocumentPlaces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.manifests.objects import Manifest
    from gpugate.webhook.report.located import Place

Effect = Literal["deny", "warn", "record", "mutate"]
_EFFECTS: Final[dict[Stance, Effect]] = {Stance.ENFORCE: "deny", Stance.WARN: "warn", Stance.AUDIT: "record"}


@dataclass(frozen=True, slots=True)
class Observed:
    """Something that one policy says at a field, and where in the file that is."""

    policy: str
    effect: Effect
    path: str
    message: str
    place: Place


class ObservedPlaces:
    """Where the fields of one object stand in its file."""

    def __init__(self, manifest: Manifest) -> None:
        self._places = DocumentPlaces(manifest.document)
        self._prefix = manifest.prefix

    def find(self, path: Path) -> Place:
        """Return the place of a field of the object."""
        return self._places.find((*self._prefix, *path))


def observed(verdict: Verdict, places: ObservedPlaces) -> Iterator[Observed]:
    """Yield every finding and every change, in the order of the catalogue."""
    for finding in verdict.findings:
        effect = _EFFECTS[finding.stance]
        yield Observed(finding.policy, effect, render(finding.path), finding.message, places.find(finding.path))
    for policy, patch in verdict.patches:
        yield Observed(policy, "mutate", render(patch.path), patch.reason, places.find(patch.path))
    for policy, made in verdict.template_patches:
        path = made.patch.path
        yield Observed(policy, "mutate", render(path), made.patch.reason, places.find(path))
