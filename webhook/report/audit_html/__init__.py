"""An audit as one HTML file that asks for nothing else: no script, font, style or picture from anywhere."""

from gpugate.webhook.report.audit_html.page import render

__all__ = ["render"]
