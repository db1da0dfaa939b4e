"""Judges manifests on disk as admission would judge their objects."""
