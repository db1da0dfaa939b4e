"""Findings as text and as data, for check, audit and tests; one file per format, and no decisions in any of them."""
