"""The verdict on one request: the findings of each policy with their stances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.findings import Patch, Patches, Replacement, Stance, Violation
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.engine.patching import Operation
    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.findings import Other
    from gpugate.policies.sdk.objects import GroupVersionKind, Request


class Finding(Struct, frozen=True):
    """A violation, or a patch that was not applied, with its stance.

    `template_of` is the workload's type if the finding is in a Pod template; `note` says why its stance is lower than
    the policy's mode (an exemption, a violation that the object already had). `convention` says that it depends on
    names that the platform has not configured. `why`, `others` and `follows` are those of the violation. `covers` are
    the policies whose findings at the same path are omitted for this one (`Violation.same_as`).
    """

    policy: str
    path: Path
    message: str
    stance: Stance
    hint: str = ""
    fix: Patches | Replacement | None = None
    template_of: GroupVersionKind | None = None
    note: str = ""
    would_patch: bool = False
    convention: bool = False
    why: str = ""
    others: tuple[Other, ...] = ()
    follows: bool = False
    covers: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The finding in one line: policy, path, message."""
        where = f"{render(self.path)}: " if self.path else ""
        return f"[{self.policy}] {where}{self.message}"


class TemplatePatch(Struct, frozen=True):
    """A patch that the Pods of a workload's template will get at admission; the template itself is not changed."""

    patch: Patch
    template_of: GroupVersionKind


class Outcome(Struct, frozen=True):
    """The outcome of one policy for a request: passed if everything is empty, else violated, patched, skipped or error.

    `patches` are those that were applied. `error` is the exception of the policy, and `stance` the effect of the
    exception. `coming` says that missing data may be available in a moment.
    """

    policy: str
    stance: Stance
    findings: tuple[Finding, ...] = ()
    patches: tuple[Patch, ...] = ()
    template_patches: tuple[TemplatePatch, ...] = ()
    skipped: tuple[str, ...] = ()
    error: str = ""
    coming: bool = False


class Verdict(Struct, frozen=True):
    """All outcomes of a request, and the object as it would be stored.

    `malformed` are the faults of the object itself, each with its mode (`at_most`): fields of the wrong type, which the
    API server would reject whatever the policies decide, and lists that are too large to evaluate. `operations` are the
    RFC 6902 operations that lead from the request's object to `object`.
    """

    request: Request
    outcomes: tuple[Outcome, ...] = ()
    malformed: tuple[Violation, ...] = ()
    object: dict[str, Json] | None = None
    operations: tuple[Operation, ...] = ()

    @property
    def findings(self) -> Iterator[Finding]:
        """Every finding, in the order of the catalogue."""
        for outcome in self.outcomes:
            yield from outcome.findings

    @property
    def denials(self) -> tuple[str, ...]:
        """The reasons for denying the request, one line each; empty if it is allowed."""
        return tuple(line_of(reason) for reason in self.reasons(Stance.ENFORCE))

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings for the user, one line each."""
        return tuple(line_of(reason) for reason in self.reasons(Stance.WARN))

    def reasons(self, mode: Stance) -> list[Violation | Finding | Outcome]:
        """Return everything with a mode: faults of the object itself, findings, and outcomes of policies with errors.

        There may be tens of thousands, of which a response shows a few; `line_of` formats one.
        """
        reasons: list[Violation | Finding | Outcome] = [wrong for wrong in self.malformed if wrong.at_most is mode]
        reasons += [finding for finding in self.findings if finding.stance is mode]
        reasons += [outcome for outcome in self.outcomes if outcome.error and outcome.stance is mode]
        return reasons

    @property
    def is_malformed(self) -> bool:
        """Whether the request is denied for a fault of the object itself."""
        return any(wrong.at_most is Stance.ENFORCE for wrong in self.malformed)

    @property
    def patches(self) -> tuple[tuple[str, Patch], ...]:
        """The applied patches, each with its policy."""
        return tuple((o.policy, patch) for o in self.outcomes for patch in o.patches)

    @property
    def template_patches(self) -> tuple[tuple[str, TemplatePatch], ...]:
        """The patches that Pods of templates in the object will get, each with its policy."""
        return tuple((o.policy, patch) for o in self.outcomes for patch in o.template_patches)

    @property
    def recorded(self) -> tuple[Finding, ...]:
        """Findings that are only counted."""
        return tuple(f for f in self.findings if f.stance is Stance.AUDIT)

    @property
    def coming(self) -> bool:
        """Whether missing data may be available in a moment."""
        return any(outcome.coming for outcome in self.outcomes)

    @property
    def allowed(self) -> bool:
        """Whether the request is allowed."""
        if self.is_malformed:
            return False
        denied = any(finding.stance is Stance.ENFORCE for finding in self.findings)
        return not denied and not any(o.error and o.stance is Stance.ENFORCE for o in self.outcomes)


def line_of(reason: Violation | Finding | Outcome) -> str:
    """Return one of `Verdict.reasons` as one line."""
    if isinstance(reason, Finding):
        return reason.line
    if isinstance(reason, Outcome):
        if reason.stance is not Stance.ENFORCE:
            return f"[{reason.policy}] failed: {reason.error}"
        return (
            f"[{reason.policy}] could not evaluate this object ({reason.error}); "
            "the platform team can set the policy to warn until its error is fixed"
        )
    return f"{render(reason.path)}: {reason.message}"
