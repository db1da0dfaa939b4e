"""What becomes of a request, and what is recorded of it on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from api_server.audit_annotations import AuditAnnotations
from api_server.warning_headers import WarningRecorder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from api_server.webhooks import Call

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the user gets, and what the API server noted.

    Attributes:
        admitted: whether the request went through admission.
        object: the object as it would be stored or connected to; None on DELETE and when it is not admitted.
        mutated: the object after the mutating webhooks, admitted or not; None when one of them ended the request.
        status: the `metav1.Status` that the user gets when it is not.
        warnings: the texts of the Warning headers.
        audit_annotations: of the audit event.
        dropped_annotations: keys that were illegal or taken.
        failed_open: webhooks that were passed over because they failed.
        calls: every call in order; those of validating webhooks in the order they are registered.
    """

    admitted: bool
    object: Json | None
    mutated: Json | None
    status: Json | None
    warnings: tuple[str, ...]
    audit_annotations: Mapping[str, str]
    dropped_annotations: tuple[str, ...]
    failed_open: tuple[str, ...]
    calls: tuple[Call, ...]

    @property
    def message(self) -> str:
        """What the user reads; empty when the request was admitted."""
        return str(self.status["message"]) if self.status else ""


class NotAdmittedError(Exception):
    """Ends a request with a status."""

    def __init__(self, status: Json) -> None:
        super().__init__(status["message"])
        self.status = status


@dataclass(slots=True)
class Record:
    """What is gathered while a request is admitted."""

    warnings: WarningRecorder = field(default_factory=WarningRecorder)
    annotations: AuditAnnotations = field(default_factory=AuditAnnotations)
    failed_open: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    mutated: Json | None = None

    def outcome(self, obj: Json | None, status: Json | None = None) -> Outcome:
        """Close the record."""
        return Outcome(
            admitted=status is None,
            object=obj if status is None else None,
            mutated=self.mutated,
            status=status,
            warnings=tuple(self.warnings.sent),
            audit_annotations=self.annotations.kept,
            dropped_annotations=tuple(self.annotations.dropped),
            failed_open=tuple(self.failed_open),
            calls=tuple(self.calls),
        )
