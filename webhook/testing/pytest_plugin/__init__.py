"""A plugin for pytest: case files and manifests as tests, and fixtures that evaluate objects as admission would."""
