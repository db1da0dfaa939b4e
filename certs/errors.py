"""What is wrong with a certificate or its key."""

from __future__ import annotations


class CertificateError(ValueError):
    """A certificate and key that cannot be used; the text says which of them and why, and shows nothing of either."""
