"""What an expression reads while it is judged, and how much it may still do."""

from __future__ import annotations

from typing import Any, Final

from gpugate.webhook.schemas.cel.errors import CelCostError

STEPS: Final = 2_000_000  # operations that all rules together may take on one object
_CHARACTERS: Final = 16  # of a text that take about as long as an operation


class Budget:
    """How many steps may still be taken."""

    __slots__ = ("left",)

    def __init__(self, steps: int | None = None) -> None:
        self.left = STEPS if steps is None else steps

    def charge(self, steps: int) -> None:
        """Count steps.

        Raises:
            CelCostError: there were too many.
        """
        self.left -= steps
        if self.left < 0:
            raise CelCostError


class Scope:
    """The variables, and the budget, which the rules of an object share."""

    __slots__ = ("charge", "variables")

    def __init__(self, variables: dict[str, Any], budget: Budget | None = None) -> None:
        self.variables = variables
        self.charge = (budget or Budget()).charge

    def charge_text(self, size: int) -> None:
        """Count what is done with a text of a size.

        Raises:
            CelCostError: it was too much.
        """
        self.charge(size // _CHARACTERS)
