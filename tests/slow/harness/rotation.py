"""Periods by which authorities and certificates change every few seconds.

Dates of certificates are whole seconds, and a machine with much to do takes a second for anything, so that nothing much
shorter can be tried. With its lag, in seconds, an API server is always less behind than an authority is published before
it signs.
"""

from __future__ import annotations

SHORT = ("--authority-life=10m", "--authority-rotation=2s", "--certificate-life=9s", "--propagation=2s")
SHORT_LAG = 0.9
LONG = ("--authority-life=30m", "--authority-rotation=7s", "--certificate-life=12s", "--propagation=7s")
LONG_LAG = 5.0
# Where keepers die: for longer than another takes to start, and to make its first one.
OUTLASTING = ("--authority-life=10m", "--authority-rotation=2s", "--certificate-life=9s", "--propagation=2s")
