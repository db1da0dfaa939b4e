"""What a repository says about how gpugate runs in it: `.gpugate.yaml`, or `[tool.gpugate]` in pyproject.toml."""
