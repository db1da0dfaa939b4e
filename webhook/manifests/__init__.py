"""Manifests on disk: YAML and JSON to requests, with line and column for every path."""
