"""The flags of `gpugate check` that say what is read and rendered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.cli.durations import seconds

if TYPE_CHECKING:
    import argparse


def add_selection(made: argparse.ArgumentParser) -> None:
    """Add the flags that choose among files."""
    group = made.add_argument_group("choice of files")
    add = group.add_argument
    add(
        "--exclude",
        action="append",
        default=[],
        metavar="GLOB",
        help="leave out files and directories: a name at any depth, or a path with * and **; repeatable",
    )
    add(
        "--force-exclude",
        action="store_true",
        help="a hook names the files: leave these out too, and pass over what is no manifest",
    )
    add("--no-respect-gitignore", action="store_true", help="read also what git ignores")
    add(
        "--changed-since",
        metavar="REF",
        help="only files that differ from what HEAD has in common with REF, and what is rendered from them",
    )
    add(
        "--context-from",
        action="append",
        default=[],
        metavar="PATH",
        help="objects that policies may look up and that are not judged: a dump, files or directories; repeatable",
    )
    add("--stdin-filename", metavar="NAME", help="the name that reports give to standard input")


def add_rendering(made: argparse.ArgumentParser) -> None:
    """Add the flags for charts and kustomizations."""
    group = made.add_argument_group("charts and kustomizations")
    add = group.add_argument
    add(
        "-k",
        "--kustomize",
        action="append",
        default=[],
        metavar="DIR",
        help="build this kustomization; those below PATH are found without it; repeatable",
    )
    add(
        "--helm",
        action="append",
        default=[],
        metavar="CHART",
        help="render this chart, a directory or archive; those below PATH are found without it; repeatable",
    )
    add(
        "--values",
        action="append",
        default=[],
        metavar="FILE",
        help="values of the chart; repeatable, the last one wins",
    )
    add("--set", action="append", default=[], metavar="K=V", help="one value of the chart, as `helm --set`; repeatable")
    add("--release", metavar="NAME", help="the name of the release (default: that of the chart's directory)")
    add("--kube-version", metavar="V", help="the Kubernetes version that charts see (default: the target's)")
    add("--enable-helm", action="store_true", help="let kustomizations inflate the Helm charts that they name")
    add(
        "--no-render",
        action="store_true",
        help="read the files beside charts, and those of kustomizations, as they are",
    )
    add(
        "--render-timeout",
        type=seconds,
        default=60.0,
        metavar="TIME",
        help="how long one rendering may take, such as 90s or 5m (default: 60s)",
    )
