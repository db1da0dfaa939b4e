from __future__ import annotations

import pytest

from gpugate.webhook.admission.front.limits import Connections, FrontEvent, Slot


def entered(connections: Connections, source: str) -> Slot:
    slot = connections.enter(source)
    assert isinstance(slot, Slot)
    return slot


def test_the_bound_in_all() -> None:
    connections = Connections(2, 2)
    entered(connections, "a")
    entered(connections, "b")
    assert connections.enter("c") is FrontEvent.REFUSED_TOTAL


def test_the_bound_of_one_source_leaves_room_for_others() -> None:
    connections = Connections(10, 2)
    entered(connections, "a")
    entered(connections, "a")
    assert connections.enter("a") is FrontEvent.REFUSED_SOURCE
    assert isinstance(connections.enter("b"), Slot)


@pytest.mark.parametrize("times", [1, 2])
def test_a_slot_is_released_once(times: int) -> None:
    connections = Connections(2, 1)
    slot = entered(connections, "a")
    entered(connections, "b")
    for _ in range(times):
        slot.release()
    assert connections.open == 1
    entered(connections, "a")
    assert connections.enter("c") is FrontEvent.REFUSED_TOTAL


def test_addresses_without_connections_are_deleted() -> None:
    connections = Connections(100, 2)
    for number in range(100):
        entered(connections, str(number)).release()
    assert len(connections._by_source) == 0
