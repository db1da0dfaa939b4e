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
        mutated: the object after the mutating webhooks, admitted or not; None when one of them ended the request.
        status: the `metav1.Status` that the user gets; None when the request is admitted.
        warnings: the texts of the Warning headers.
        audit_annotations: of the audit event.
        dropped_annotations: keys that were illegal or taken.
        calls: every call in order; those of validating webhooks in the order they are registered.
    """

    mutated: Json | None
    status: Json | None
    warnings: tuple[str, ...]
    audit_annotations: Mapping[str, str]
    dropped_annotations: tuple[str, ...]
    calls: tuple[Call, ...]

    @property
    def admitted(self) -> bool:
        """Whether the request went through admission."""
        return self.status is None

    @property
    def message(self) -> str:
        """What the user reads; empty when the request was admitted."""
        return str(self.status["message"]) if self.status else ""


class DeniedError(Exception):
    """Ends a request with a status."""

    def __init__(self, status: Json) -> None:
        super().__init__(status["message"])
        self.status = status


@dataclass(slots=True)
class Record:
    """What is gathered while a request is admitted."""

    warnings: WarningRecorder = field(default_factory=WarningRecorder)
    annotations: AuditAnnotations = field(default_factory=AuditAnnotations)
    calls: list[Call] = field(default_factory=list)
    mutated: Json | None = None

    def outcome(self, status: Json | None = None) -> Outcome:
        """Close the record."""
        return Outcome(
            mutated=self.mutated,
            status=status,
            warnings=tuple(self.warnings.sent),
            audit_annotations=self.annotations.kept,
            dropped_annotations=tuple(self.annotations.dropped),
            calls=tuple(self.calls),
        )


def denial(webhook: str, status: Json | None) -> Json:
    """What the user is told when a webhook says no; a code below 400 and a Success are not believed.

    Source: `k8s.io/apiserver` pkg/admission/plugin/webhook/errors/statuserror.go, v1.36.
    """
    told = dict(status or {})
    told["code"] = max(told.get("code") or 0, 400)
    if told.get("status") in {None, "", "Success"}:
        told["status"] = "Failure"
    denied = f'admission webhook "{webhook}" denied the request'
    said = told.get("message") or told.get("reason")
    told["message"] = f"{denied}: {said}" if said else f"{denied} without explanation"
    return told
