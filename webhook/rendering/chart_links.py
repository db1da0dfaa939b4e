"""Finds links in a chart through which a template could print what is not in the repository."""

from __future__ import annotations

import os
from typing import Final

from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.manifests.within import GIT, is_within
from gpugate.webhook.manifests.work_tree import work_tree

_REMEDY: Final = "put a file in its place, or leave the chart out with --exclude"


def link_out(chart: str) -> Problem | None:
    """Say where a chart leads out of the work tree that it is in, or to what is git's; None where it does not.

    Helm follows all links and lets templates print any file below the chart's directory (`.Files.Get`), and whoever
    proposes a change may have written both. A link to the top of the repository leads to what is git's. Where there is no work tree, nothing says what belongs to the chart.
    """
    top = work_tree(chart)
    if top is None:
        return None
    seen: set[str] = set()
    for folder, folders, files in os.walk(chart, followlinks=True):
        # Of the chart's own top, `chart_stage` leaves it out.
        if GIT in folders and folder != chart:
            path = os.path.join(folder, GIT)  # noqa: PTH118 -- as below
            return Problem(path, 0, 0, "git's own files, which a template of this chart could print", _REMEDY)
        for name in sorted((*folders, *files)):
            path = os.path.join(folder, name)  # noqa: PTH118 -- the user's `./` stays
            if os.path.islink(path) and not is_within(path, top):  # noqa: PTH114 -- of a text
                wrong = "a link out of the repository, to which a template of this chart could look"
                return Problem(path, 0, 0, wrong, _REMEDY)
        # Links to directories above would be followed for ever.
        folders[:] = [name for name in sorted(folders) if _is_new(os.path.join(folder, name), seen)]  # noqa: PTH118 -- as above
    return None


def _is_new(folder: str, seen: set[str]) -> bool:
    real = os.path.realpath(folder)
    is_new = real not in seen
    seen.add(real)
    return is_new
