"""What an hour of a node costs: on-demand list prices of the catalogue, and those that a user's table states instead."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.policies.data.instance_types import InstanceTypes

PLACE: Final = "us-east-1"


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of nodes by instance type, in USD an hour.

    Attributes:
        catalogue: EC2's types, with what they cost on demand in `PLACE`.
        own: the user's prices, which win; a type may be one that the catalogue does not know.
        source: the name of the user's table; empty where there is none.
    """

    catalogue: InstanceTypes
    own: Mapping[str, Fraction] = field(default_factory=dict)
    source: str = ""

    def of(self, instance_type: str) -> Fraction | None:
        """Return the price of a type; None where nobody says."""
        if instance_type in self.own:
            return self.own[instance_type]
        position = self.catalogue.positions.get(instance_type)
        price = None if position is None else self.catalogue.prices[position]
        # By way of its text, so that 21.957642 is exactly that and sums do not depend on their order.
        return None if price is None else Fraction(str(price))

    def is_listed(self, instance_type: str) -> bool:
        """Tell whether the price of a type is the catalogue's, which is that of one place."""
        return instance_type not in self.own

    def __str__(self) -> str:
        listed = f"on-demand list prices, {PLACE}, {self.catalogue.date}"
        if not self.source:
            return listed
        count = len(self.own)
        return f"{self.source} for {count} instance type{'' if count == 1 else 's'}; for the others {listed}"
