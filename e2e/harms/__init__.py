"""Harms that policies prevent, each shown to happen and not to happen."""
