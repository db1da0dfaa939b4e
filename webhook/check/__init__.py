"""Evaluates manifests on disk as admission would evaluate their objects."""
