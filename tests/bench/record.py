"""What a record costs the reviews, how many of them it contains at full load, and its size."""

from __future__ import annotations

import json
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Final

from figures import Measured, figure
from in_turns import compare
from served import cases

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUIET_SECONDS: Final = 3.0
_NAMES: Final = 1_000


def measure() -> Iterator[Measured]:
    """Measure rates and CPU time in pairs, the reviews that were recorded, and the size of 1,000 different ones."""
    with tempfile.TemporaryDirectory() as name:
        measured, counts = compare(Path(name), ["--record", str(Path(name) / "record")], _reviews)
    yield from measured
    handled = 100 * (counts.get("recorded", 0) + counts.get("repeated", 0)) / sum(counts.values())
    yield Measured(figure("share of the reviews that the record contains", [handled], "%"))
    yield Measured(figure("size of 1,000 different reviews of 6 KB", [_size() / 1_000], "KB"))


def _reviews(health: str) -> dict[str, float]:
    """Return result -> the reviews that the server was to record, once its workers are idle."""
    time.sleep(_QUIET_SECONDS)
    metrics = urllib.request.urlopen(f"{health}/metrics").read().decode()  # noqa: S310 -- on loopback
    return {
        line.split('"')[1]: float(line.rpartition(" ")[2])
        for line in metrics.splitlines()
        if line.startswith("gpugate_record_reviews_total{")
    }


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
