"""An audit as one HTML file that loads no external resources."""

from gpugate.webhook.report.audit_html.page import render

__all__ = ["render"]
