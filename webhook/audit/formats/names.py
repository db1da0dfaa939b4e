"""The output formats of an audit; each is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gpugate.webhook.audit.formats.presentation import Presentation
    from gpugate.webhook.audit.model import AuditReport

FORMATS: Final = ("text", "wide", "json", "csv", "markdown", "html", "sarif", "junit", "prometheus")


def render(name: str, report: AuditReport, presentation: Presentation) -> str:
    """Write an audit in a format of `FORMATS`, with a final newline."""
    text: str = import_module(f"gpugate.webhook.audit.formats.{name}").render(report, presentation)
    return text
