from __future__ import annotations

import pytest

from gpugate.webhook.admission.front.limits import Connections, FrontEvent, Slot


def nothing() -> None:
    """Do nothing about an eviction."""


def entered(connections: Connections, source: str) -> Slot:
    slot = connections.enter(source, nothing)
    assert isinstance(slot, Slot)
    return slot


def test_the_bound_in_all() -> None:
    connections = Connections(2, 2)
    entered(connections, "a")
    entered(connections, "b")
    assert connections.enter("c", nothing) is FrontEvent.REFUSED_TOTAL


def test_the_bound_of_one_source_leaves_room_for_others() -> None:
    connections = Connections(10, 2)
    entered(connections, "a")
    entered(connections, "a")
    assert connections.enter("a", nothing) is FrontEvent.REFUSED_SOURCE
    assert isinstance(connections.enter("b", nothing), Slot)


@pytest.mark.parametrize("times", [1, 2])
def test_a_slot_is_released_once(times: int) -> None:
    connections = Connections(2, 1)
    slot = entered(connections, "a")
    entered(connections, "b")
    for _ in range(times):
        slot.release()
    assert connections.open == 1
    entered(connections, "a")
    assert connections.enter("c", nothing) is FrontEvent.REFUSED_TOTAL


def test_addresses_without_connections_are_deleted() -> None:
    connections = Connections(100, 2)
    for number in range(100):
        entered(connections, str(number)).release()
    assert len(connections._by_source) == 0


# The addresses of four open connections in the order of their age, those that can be closed, the address of a new one, and the
# number of the connection whose place it takes.
EVICTIONS = [
    pytest.param("aaab", "1111", "c", 0, id="the oldest of the address with the most"),
    pytest.param("abbb", "1111", "c", 1, id="not the oldest of all"),
    pytest.param("baaa", "1011", "c", 2, id="the oldest that answers nothing"),
    pytest.param("baaa", "1000", "c", None, id="none of an address with fewer"),
    pytest.param("aabc", "1111", "b", None, id="none if no address has two more"),
    pytest.param("bbba", "1111", "b", None, id="none if it has the most"),
    pytest.param("aaaa", "1111", "a", 0, id="its own if it has all"),
]


@pytest.mark.parametrize(("open_", "closable", "new", "closed"), EVICTIONS)
def test_at_the_limit_another_connection_gives_way(open_: str, closable: str, new: str, closed: int | None) -> None:
    connections, gone, counted = Connections(4, 4), [], []

    def giving_way(number: int) -> bool:
        if closable[number] == "1":
            gone.append(number)
        return closable[number] == "1"

    for number, source in enumerate(open_):
        entered(connections, source).gives_way = lambda number=number: giving_way(number)  # type: ignore[misc]
    result = connections.enter(new, lambda: counted.append(new))
    expected = ([], []) if closed is None else ([closed], [new])
    assert (gone, counted, connections.open) == (*expected, 4)
    assert isinstance(result, Slot) or (closed is None and result is FrontEvent.REFUSED_TOTAL)
