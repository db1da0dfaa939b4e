"""Findings as text and as data; one file per format, and no decisions in any of them."""
