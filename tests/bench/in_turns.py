"""What a feature of the server costs the reviews: the same load on a server with it and on a server without, in turns."""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, TypeVar

import servers
from figures import Measured, figure
from served import CONNECTIONS, WORKERS, cases, send

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

T = TypeVar("T")
_REPETITIONS: Final = 15
# So many that the queue of a worker is a small part of them.
_REQUESTS: Final = 3_000
# The most that the feature may take of the rate.
_MOST: Final = 1.1


def compare(folder: Path, flags: Sequence[str], look: Callable[[str], T]) -> tuple[list[Measured], T]:
    """Measure rates and CPU time in pairs.

    Args:
        folder: an empty folder for both servers.
        flags: the flags of the feature.
        look: what to read at the health URL of the server with the feature in the end; returned too.
    """
    runs: dict[str, list[float]] = defaultdict(list)
    sent = [case._replace(requests=_REQUESTS) for case in cases() if case.name in {"/mutate 6 KB", "/validate 6 KB"}]
    with ExitStack() as running:
        for name in ("without", "with"):
            (folder / name).mkdir()
        plain = running.enter_context(servers.gpugate(folder / "without", WORKERS))
        featured = running.enter_context(servers.gpugate(folder / "with", WORKERS, *flags))
        for repetition in range(-1, _REPETITIONS):
            for case in sent:
                key = f"{case.name}, {CONNECTIONS} connections"
                # In turns also within a pair, so that neither always comes first.
                pair = [(plain, "without"), (featured, "with")]
                turn = pair if repetition % 2 else pair[::-1]
                taken = {side: send(server, case, CONNECTIONS) for server, side in turn}
                if repetition >= 0:
                    before, after = taken["without"], taken["with"]
                    runs[f"{key}: rate without, times that with"].append(before.load.rate / after.load.rate)
                    runs[f"{key}: CPU with, times that without"].append(after.cpu / before.cpu)
                    runs["others"].append(100 * max(before.others, after.others))
        seen = look(featured.health)
    others = runs.pop("others")
    measured = [Measured(figure(key, values, "x"), _MOST) for key, values in runs.items()]
    return [*measured, Measured(figure("share of the machine that others took", others, "%"))], seen
