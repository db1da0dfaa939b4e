"""The directory that Helm is given in a chart's place where templates could look into git's own files."""

from __future__ import annotations

import os
from pathlib import Path

from gpugate.webhook.manifests.within import is_git


def staged(chart: str, home: str) -> str:
    """Return the chart; where it is the top of a repository, a directory below `home` with links to all but `.git`.

    Helm reads every file below a chart, and a template may print any of them (`.Files.Get`). Checkouts in CI keep
    credentials in `.git/config`.

    Raises:
        OSError: the links cannot be made.
    """
    if not Path(chart).is_dir() or not any(is_git(each.name) for each in Path(chart).iterdir()):
        return chart
    stage = Path(os.path.realpath(home), "chart", Path(os.path.realpath(chart)).name)
    stage.mkdir(parents=True)
    for each in Path(os.path.realpath(chart)).iterdir():
        if not is_git(each.name):
            (stage / each.name).symlink_to(each)
    return str(stage)
