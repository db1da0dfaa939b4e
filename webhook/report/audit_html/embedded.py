"""The data of the page for programs: the JSON document `gpugate.dev/audit/v1`, packed where it is long.

Long ones are gzip in base64, because a report is something people send to each other.
"""

from __future__ import annotations

import base64
import gzip
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.webhook.report.audit_html.markup import Html
from gpugate.webhook.report.audit_json import encode
from gpugate.webhook.report.audit_schema import SCHEMA
from gpugate.webhook.report.plain import plain_json

if TYPE_CHECKING:
    from gpugate.webhook.report.audit_presentation import Presentation
    from gpugate.webhook.report.audited import AuditReport

MOST_PLAIN: Final = 200_000


def embedded(report: AuditReport, presentation: Presentation, most_plain: int = MOST_PLAIN) -> Html:
    """Return the data block; no text in it can end it."""
    data = encode(report, presentation)
    if len(data) > most_plain:
        # Without a time of its own, so that the same audit is the same file.
        packed = base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()
        data = msgspec.json.encode({"contains": SCHEMA, "encoding": "gzip+base64", "data": packed})
    # JSON has these characters in strings only, where they may be written so.
    text = plain_json(data.decode()).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Html(f'<script type="application/json" id="data">{text}</script>')
