"""What a record costs the reviews: the same load on a server with one and on a server without, in turns; and its size."""

from __future__ import annotations

import json
import tempfile
import time
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
# The most that the record may take of the rate.
_MOST: Final = 1.1
_QUIET_SECONDS: Final = 3.0
_NAMES: Final = 1_000


def measure() -> Iterator[Measured]:
    """Measure rates and CPU time in pairs, the reviews that were recorded, and the size of 1,000 different ones."""
    runs: dict[str, list[float]] = defaultdict(list)
    sent = [case._replace(requests=_REQUESTS) for case in cases() if case.name in {"/mutate 6 KB", "/validate 6 KB"}]
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        (folder / "recording").mkdir()
        plain = running.enter_context(servers.gpugate(folder, WORKERS))
        recording = running.enter_context(
            servers.gpugate(folder / "recording", WORKERS, "--record", str(folder / "record"))
        )
        for repetition in range(-1, REPETITIONS):
            for case in sent:
                key = f"{case.name}, {CONNECTIONS} connections"
                # In turns also within a pair, so that neither always comes first.
                pair = [(plain, "without"), (recording, "with")]
                turn = pair if repetition % 2 else pair[::-1]
                taken = {side: send(server, case, CONNECTIONS) for server, side in turn}
                if repetition >= 0:
                    without, with_record = taken["without"], taken["with"]
                    runs[f"{key}: rate without, times that with"].append(without.load.rate / with_record.load.rate)
                    runs[f"{key}: CPU with, times that without"].append(with_record.cpu / without.cpu)
                    runs["others"].append(100 * max(without.others, with_record.others))
        time.sleep(_QUIET_SECONDS)
        metrics = urllib.request.urlopen(f"{recording.health}/metrics").read().decode()  # noqa: S310 -- on loopback
    others = runs.pop("others")
    for key, values in runs.items():
        yield Measured(figure(key, values, "x"), _MOST)
    counts = {
        line.split('"')[1]: float(line.rpartition(" ")[2])
        for line in metrics.splitlines()
        if line.startswith("gpugate_record_reviews_total{")
    }
    handled = 100 * (counts.get("recorded", 0) + counts.get("repeated", 0)) / sum(counts.values())
    yield Measured(figure("share of the reviews that the record contains", [handled], "%"))
    yield Measured(figure("size of 1,000 different reviews of 6 KB", [_size() / 1_000], "KB"))
    yield Measured(figure("share of the machine that others took", others, "%"))


def _size() -> int:
    """Return the bytes of a file with 1,000 reviews of Pods of 6 KB that differ in their names."""
    import zlib  # noqa: PLC0415 -- only here

    from gpugate.policies import catalog  # noqa: F401, PLC0415 -- the library whose words are read
    from gpugate.webhook.admission.redaction import Vocabulary, library_texts, redacted  # noqa: PLC0415 -- as above

    vocabulary = Vocabulary(library_texts())
    (case,) = (case for case in cases() if case.name == "/validate 6 KB")
    pod = json.loads(case.body)["request"]["object"]
    compressor = zlib.compressobj(6)
    size = 0
    for number in range(_NAMES):
        pod["metadata"]["name"] = f"worker-{number}"
        size += len(compressor.compress(json.dumps(redacted(pod, vocabulary)).encode()))
    return size + len(compressor.flush())
