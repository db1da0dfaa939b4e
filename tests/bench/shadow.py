"""What a shadow policy file costs the reviews: the same load on a server with one and on a server without, in turns."""

from __future__ import annotations

import json
import tempfile
import urllib.request
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import servers
from figures import Measured, figure
from served import CONNECTIONS, WORKERS, cases, send

if TYPE_CHECKING:
    from collections.abc import Iterator

REPETITIONS: Final = 15
# So many that the queue of a worker is a small part of them.
_REQUESTS: Final = 3_000
# The most that the shadow may take of the rate.
_MOST: Final = 1.1
_CANDIDATE: Final = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\npolicies:\n  pods/*: {mode: enforce}\n"


def measure() -> Iterator[Measured]:
    """Measure rates and latencies in pairs, and how many reviews the shadow evaluated."""
    runs: dict[str, list[float]] = defaultdict(list)
    sent = [case._replace(requests=_REQUESTS) for case in cases() if case.name in {"/mutate 6 KB", "/validate 6 KB"}]
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        (folder / "shadow").mkdir()
        candidate = folder / "candidate.yaml"
        candidate.write_text(_CANDIDATE)
        plain = running.enter_context(servers.gpugate(folder, WORKERS))
        shadow = running.enter_context(
            servers.gpugate(folder / "shadow", WORKERS, "--shadow-policy-file", str(candidate))
        )
        for repetition in range(-1, REPETITIONS):
            for case in sent:
                key = f"{case.name}, {CONNECTIONS} connections"
                # In turns also within a pair, so that neither always comes first.
                pair = [(plain, "without"), (shadow, "with")]
                turn = pair if repetition % 2 else pair[::-1]
                taken = {side: send(server, case, CONNECTIONS) for server, side in turn}
                if repetition >= 0:
                    without, with_shadow = taken["without"], taken["with"]
                    runs[f"{key}: rate without, times that with"].append(without.load.rate / with_shadow.load.rate)
                    runs[f"{key}: CPU with, times that without"].append(with_shadow.cpu / without.cpu)
                    runs["others"].append(100 * max(without.others, with_shadow.others))
        reviews = json.loads(urllib.request.urlopen(f"{shadow.health}/shadow").read())["reviews"]  # noqa: S310 -- on loopback
    others = runs.pop("others")
    for key, values in runs.items():
        yield Measured(figure(key, values, "x"), _MOST)
    evaluated = 100 * reviews.get("evaluated", 0) / sum(reviews.values())
    yield Measured(figure("share of the reviews that the shadow evaluated", [evaluated], "%"))
    yield Measured(figure("share of the machine that others took", others, "%"))
