"""What API servers refuse of the manifests of a run, beside what policies find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.webhook.report.located import Located, Severity, Sort
from gpugate.webhook.schemas import tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gpugate.policies.sdk.kinds import GroupVersionKind
    from gpugate.policies.sdk.platform import Target
    from gpugate.webhook.check.locate import Locator
    from gpugate.webhook.manifests.objects import Manifest
    from gpugate.webhook.schemas.check import Schemas


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that is refused, and what says the same; it need not be told where one of these is."""

    finding: Located
    said_by: tuple[Located, ...]


class SchemaFindings:
    """Holds manifests against the schemas of their kinds.

    Args:
        target: the releases assumed.
        folder: holds the schemas that the user added.
    """

    def __init__(self, target: Target, folder: Path | None) -> None:
        self._target = target
        self._folder = folder
        self._schemas: Schemas | None = None

    def concern(self, kind: GroupVersionKind) -> bool:
        """Tell whether there are schemas of a kind."""
        return tables.find(kind.group, kind.kind, self._folder) is not None

    def of(self, manifest: Manifest, beside: Sequence[Located], locator: Locator) -> Iterator[Refusal]:
        """Yield what is refused of a manifest, with those findings `beside` it that say and deny the same."""
        if self._schemas is None:
            from gpugate.webhook.schemas.check import Schemas  # noqa: PLC0415 -- costs start-up time

            self._schemas = Schemas(self._folder)
        request, kind = manifest.request, manifest.request.kind
        denials = [finding for finding in beside if _denies(finding)]
        problems = self._schemas.problems(request.object, kind.group, kind.version, kind.kind, self._target)
        for problem in problems:
            found = locator.schema_problem(manifest, problem)
            yield Refusal(found, tuple(d for d in denials if _covers(d.path, found.path, parts=problem.whole)))


def _denies(finding: Located) -> bool:
    return finding.severity is Severity.ERROR and finding.sort in {Sort.VIOLATION, Sort.MALFORMED}


def _covers(denied: str, path: str, *, parts: bool) -> bool:
    """Tell whether what is denied is at a path, or, of a thing as a whole, a part of it."""
    return denied == path or (parts and denied.startswith((f"{path}.", f"{path}[")))
