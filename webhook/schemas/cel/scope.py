"""What an expression reads while it is judged."""

from __future__ import annotations

from typing import Any, Final

from gpugate.webhook.schemas.cel.errors import CelCostError

STEPS: Final = 1_000_000  # elements that the quantifiers of one rule may look at in one object


class Scope:
    """The variables, and how many elements quantifiers may still look at."""

    __slots__ = ("_steps", "variables")

    def __init__(self, variables: dict[str, Any]) -> None:
        self.variables = variables
        self._steps = STEPS

    def step(self) -> None:
        """Count an element.

        Raises:
            CelCostError: there were too many.
        """
        self._steps -= 1
        if self._steps < 0:
            raise CelCostError
