"""An audit as JSON, `gpugate.dev/audit/v1`: written, read again for `--compare`, and its JSON schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.audit.model import SCHEMA, Action, AuditReport, Use
from gpugate.webhook.report.plain import plain_json

if TYPE_CHECKING:
    from gpugate.webhook.audit.formats.presentation import Presentation


class AuditDocumentError(GpugateError):
    """A text is not an audit, or one of an unsupported version."""


def render(report: AuditReport, presentation: Presentation) -> str:
    """Write an audit, indented."""
    return plain_json(msgspec.json.format(encode(report, presentation), indent=2).decode()) + "\n"


def encode(report: AuditReport, presentation: Presentation) -> bytes:
    """Write an audit on one line; its summary also counts the objects that are left out.

    These have no findings, and all their GPUs are busy.
    """
    included = (
        audited
        for audited in report.audited
        if presentation.include_passed
        or audited.action is not Action.ALLOW
        or any(part.use is not Use.BUSY for part in audited.used)
    )
    return msgspec.json.encode(msgspec.structs.replace(report, audited=tuple(included)))


def read(text: str | bytes) -> AuditReport:
    """Read an audit, with its objects without findings only if the document contains them.

    Raises:
        AuditDocumentError: the text is invalid; the message names the location in the text, but not the file.
    """
    try:
        decoder = msgspec.json.Decoder(AuditReport)
        return read_json(decoder.decode, text if isinstance(text, bytes) else text.encode())
    except (msgspec.DecodeError, UnicodeError) as error:
        raise AuditDocumentError(f"not an audit in the format {SCHEMA}: {error}; write one with -o json=FILE") from None


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **msgspec.json.schema(AuditReport),
    }
