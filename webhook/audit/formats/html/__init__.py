"""An audit as one HTML file that loads no external resources."""

from gpugate.webhook.audit.formats.html.page import render

__all__ = ["render"]
