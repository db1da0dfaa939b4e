"""What is refused in a project file, or in a variable that stands in for it."""

from __future__ import annotations

from gpugate.policies.engine.errors import GpugateError


class ProjectFileError(GpugateError):
    """A project file cannot be read, or what it says is refused; the text begins with file, line and column."""


class VariableError(GpugateError):
    """A variable of the environment holds what its setting does not take."""
