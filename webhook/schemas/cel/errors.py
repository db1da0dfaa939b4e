"""What goes wrong with an expression, when it is translated and when it is judged."""

from __future__ import annotations

from gpugate.policies.engine.errors import GpugateError


class CelSyntaxError(GpugateError):
    """The text is no expression; says at which character."""


class CelUnsupportedError(GpugateError):
    """The expression uses something that is not translated here; says what."""


class CelEvaluationError(Exception):
    """The expression has no value for this object, as where it reads a member that is missing; says why."""


class CelCostError(Exception):
    """The expression takes too many steps for this object."""
