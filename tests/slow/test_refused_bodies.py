"""Rejected bodies of every kind are freed: resident memory does not grow.

Each kind is sent to a server without garbage collection, which shows memory in cycles, and to an unmodified server.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from harness.processes import megabytes, wait_until
from harness.refused_bodies import KINDS, sent

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.refused_bodies import Kind

GROWTH_MEGABYTES = 5
SETTLED_SECONDS = 15
# No garbage collection, neither by Python nor by the server.
UNCOLLECTED = "import gc; gc.disable(); gc.collect = lambda *_: 0; "


def largest(server: Any, worker: int, kind: Kind) -> float:
    """Return the resident memory of a worker in MB after a few requests of a kind."""
    sizes = [megabytes(worker)]
    for _ in range(kind.warming):
        sent(server, kind, 1)
        sizes.append(megabytes(worker))
    return max(sizes)


def smallest_soon(worker: int, wanted: float) -> float:
    """Return the resident memory once it is small enough, or after a while; a worker sees closed connections late."""
    found = [megabytes(worker)]

    def is_small() -> bool:
        found.append(megabytes(worker))
        return found[-1] <= wanted

    with contextlib.suppress(AssertionError):
        wait_until(is_small, "", patience=SETTLED_SECONDS)
    return min(found)


@pytest.mark.parametrize("program", [UNCOLLECTED, ""], ids=["uncollected", "as-shipped"])
def test_rejected_bodies_are_freed(
    serve: Callable[..., Any], counts: Callable[[int, int], int], show: Callable[..., None], program: str
) -> None:
    server = serve(program=program, workers=1)
    (worker,) = server.workers()
    grown = {}
    for name, kind in KINDS.items():
        before = largest(server, worker, kind)
        sent(server, kind, counts(6, 1_000))
        grown[name] = smallest_soon(worker, before + GROWTH_MEGABYTES) - before
    show(
        f"bodies turned away, {'uncollected' if program else 'as shipped'}",
        {name: f"{size:+.1f}MB" for name, size in grown.items()} | {"in the end": f"{megabytes(worker):.0f}MB"},
    )
    assert {name: size for name, size in grown.items() if size > GROWTH_MEGABYTES} == {}
    assert server.workers() == [worker]
