"""Tests that people write of policies and manifests: case files, and expectations in manifests themselves."""
