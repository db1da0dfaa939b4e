"""How often the schemas of a table look at one value at most, and how deep they stand in each other.

A node may stand below several others, so that a small table can ask for more than a lifetime: each of thirty nodes that
names the next one twice in `anyOf` doubles what is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.webhook.schemas.table import Node

MOST_LOOKS: Final = 1_000  # at one value; the definitions known look at none more than 10 times
_DEEPEST: Final = 250


def refuse_branching(nodes: Sequence[Node]) -> None:
    """Refuse a table whose nodes, each after those it names, would look at a value too often, or stand too deep.

    Raises:
        ValueError: they would.
    """
    looks: list[int] = []
    depths: list[int] = []
    for node in nodes:
        nested = [*node.all_of, *node.any_of, *node.one_of, *([node.none_of] if node.none_of is not None else ())]
        below = [*node.properties.values(), *(each for each in (node.values, node.items) if each is not None)]
        looks.append(sum(looks[each] for each in nested) + max((looks[each] for each in below), default=1))
        depths.append(1 + max((depths[each] for each in (*nested, *below)), default=0))
        if looks[-1] > MOST_LOOKS or depths[-1] > _DEEPEST:
            raise ValueError("its allOf, anyOf, oneOf and not stand in each other too often, or its schemas too deep")
