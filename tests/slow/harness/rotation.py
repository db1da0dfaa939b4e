"""Lifetimes with which authorities and certificates change every few seconds.

Dates of certificates are whole seconds, and a busy machine takes a second for any step, so shorter lifetimes cannot be
tested. The lag of an API server is always shorter than the time between the publication and the first use of an
authority.
"""

from __future__ import annotations

SHORT = ("--authority-life=10m", "--authority-rotation=2s", "--certificate-life=9s", "--propagation=2s")
SHORT_LAG = 0.9
LONG = ("--authority-life=30m", "--authority-rotation=7s", "--certificate-life=12s", "--propagation=7s")
LONG_LAG = 5.0
# For tests that kill keepers: longer than another keeper takes to start and to create its first certificate.
OUTLASTING = ("--authority-life=10m", "--authority-rotation=2s", "--certificate-life=9s", "--propagation=2s")
