"""A plugin for pytest: case files and manifests as tests, and fixtures that judge objects as admission would."""
