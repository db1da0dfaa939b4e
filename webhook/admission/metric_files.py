"""The files in which each process keeps what it counts, as prometheus-client lays them out; those of the dead become one.

Without that a worker that dies again and again would leave two files each time, and every scrape reads all.
"""

from __future__ import annotations

import shutil
import struct
from typing import TYPE_CHECKING, Final

from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import mark_process_dead

if TYPE_CHECKING:
    from pathlib import Path

_COUNTED: Final = ("counter", "histogram")


def forget(directory: Path, pid: int) -> None:
    """Keep what a dead process counted with what others before it did, and drop its gauges; for the supervisor only.

    A scrape that reads in the same instant may find a file gone.
    """
    mark_process_dead(pid, str(directory))  # type: ignore[no-untyped-call] # the library has no types there
    for kind in _COUNTED:
        file = directory / f"{kind}_{pid}.db"
        if file.exists():
            _add(file, directory / f"{kind}_dead.db")


def _add(file: Path, total: Path) -> None:
    # Not yet a name that a scrape looks for.
    draft = total.with_suffix(".draft")
    if total.exists():
        shutil.copyfile(total, draft)
    values = MmapedDict(str(draft))  # type: ignore[no-untyped-call] # as above
    try:
        for key, value, _, _ in MmapedDict.read_all_values_from_file(str(file)):  # type: ignore[no-untyped-call] # as above
            values.write_value(key, values.read_value(key)[0] + value, 0.0)  # type: ignore[no-untyped-call] # as above
    except struct.error:
        # The process was killed while it made the file, before it counted anything.
        pass
    finally:
        values.close()  # type: ignore[no-untyped-call] # as above
    draft.replace(total)
    file.unlink()
