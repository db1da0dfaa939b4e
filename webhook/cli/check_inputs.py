"""What `gpugate check` reads: files, what charts and kustomizations become, and the context beside them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpugate.webhook.check.run import Beside
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.manifests.inputs import (
    KUSTOMIZATION_FILES,
    STDIN,
    Chart,
    Found,
    Input,
    Kustomization,
    Selection,
    expand,
    sources,
)
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.policies.sdk.objects import Request
    from gpugate.webhook.rendering.charts import ChartValues


@dataclass(frozen=True, slots=True)
class Gathered:
    """What is to be judged, what there is to know beside it, and sentences on what could not be respected."""

    found: list[Found]
    beside: Beside
    remarks: tuple[str, ...] = ()


def gathered(paths: Sequence[str], args: argparse.Namespace, kube_version: str, jobs: int) -> Gathered:
    """Expand paths, and render what is to be rendered.

    Args:
        paths: what the user named.
        args: the flags.
        kube_version: the version of Kubernetes of the target.
        jobs: how many programs may run at once.

    Raises:
        UsageError: flags do not fit together.
        GitError: git cannot say what has changed.
    """
    _refuse(args)
    selection, remarks = _selection([*paths, *args.kustomize], args)
    found: list[Found | Chart | Kustomization] = list((expand if args.no_render else sources)(paths, selection))
    found += _named(args, found)
    if args.stdin_filename:
        found = [
            replace(part, shown=args.stdin_filename) if isinstance(part, Input) and part.name == STDIN else part
            for part in found
        ]
    context, problems = _context(args)
    given = _given(args, found)
    # What flags say of a chart takes the place of what the project file says of it.
    named = {os.path.realpath(each.path) for each in given}
    charts = (*given, *(each for each in args.charts if os.path.realpath(each.path) not in named))
    problems += [_no_chart(each.path) for each in args.charts if not Path(each.path).exists()]
    if not any(isinstance(part, Chart | Kustomization) for part in found):
        plain = [part for part in found if not isinstance(part, Chart | Kustomization)]
        return Gathered([*plain, *problems], Beside(context), remarks)

    from gpugate.webhook.check.rendered import RenderedTexts  # noqa: PLC0415 -- costs start-up time, and few need it
    from gpugate.webhook.rendering.options import Limits, RenderOptions  # noqa: PLC0415
    from gpugate.webhook.rendering.render import rendered  # noqa: PLC0415

    options = RenderOptions(
        args.kube_version or kube_version,
        args.namespace,
        charts,
        selection.changed,
        inflate=args.enable_helm,
        jobs=jobs,
        limits=Limits(args.render_timeout),
    )
    made = rendered(found, options)
    beside = Beside(context, RenderedTexts(made.texts, options) if made.texts else None)
    return Gathered([*made.found, *problems], beside, remarks)


def _refuse(args: argparse.Namespace) -> None:
    if args.no_render and (args.helm or args.kustomize or args.values or args.set):
        raise UsageError("--no-render renders nothing: leave it out, or --helm, --kustomize, --values and --set")


def _selection(paths: Sequence[str], args: argparse.Namespace) -> tuple[Selection, tuple[str, ...]]:
    selection = Selection(tuple(args.exclude), args.force_exclude)
    if args.changed_since is not None:
        from gpugate.webhook.manifests.git import changed_since  # noqa: PLC0415 -- starts programs

        named = [path for path in [*paths, *args.helm] if path != STDIN and not path.startswith("/dev/")] or [os.curdir]
        selection = replace(selection, changed=changed_since(args.changed_since, named))
    directories = [] if args.no_respect_gitignore else [path for path in paths if Path(path).is_dir()]
    if not directories:
        return selection, ()

    from gpugate.webhook.manifests.git import GitError, ignored  # noqa: PLC0415 -- starts programs

    try:
        return replace(selection, ignored=ignored(directories)), ()
    except GitError as error:
        return selection, (f"what git ignores is read too: {error}",)


def _named(args: argparse.Namespace, found: Sequence[object]) -> list[Found | Chart | Kustomization]:
    """Return what flags name to be rendered, and the paths do not have already."""
    named: list[Found | Chart | Kustomization] = []
    have = {os.path.realpath(part.name) for part in found if isinstance(part, Chart)}
    named += [Chart(chart) for chart in args.helm if os.path.realpath(chart) not in have]
    have = {os.path.realpath(part.name) for part in found if isinstance(part, Kustomization)}
    for directory in args.kustomize:
        file = next((name for name in KUSTOMIZATION_FILES if Path(directory, name).is_file()), None)
        if file is None:
            names = ", ".join(KUSTOMIZATION_FILES)
            named.append(Problem(directory, 0, 0, "no kustomization in this directory", f"it would be called {names}"))
        elif os.path.realpath(directory) not in have:
            named.append(Kustomization(directory, file))
    return named


def _given(args: argparse.Namespace, found: Sequence[object]) -> list[ChartValues]:
    """Return what flags say of charts.

    Raises:
        UsageError: it is not clear which chart they are for.
    """
    if not (args.values or args.set or args.release):
        return []
    charts = args.helm or [part.name for part in found if isinstance(part, Chart)]
    if len(charts) != 1:
        raise UsageError(
            f"--values, --set and --release are for one chart, and here {'is none' if not charts else f'are {len(charts)}'}: "
            "name it with --helm, or list values of several under `charts:` in .gpugate.yaml"
        )
    from gpugate.webhook.rendering.charts import ChartValues  # noqa: PLC0415 -- few runs render a chart

    return [ChartValues(charts[0], (tuple(args.values),), tuple(args.set), args.release or "")]


def _no_chart(path: str) -> Problem:
    remedy = "correct its `path` under `charts:` in the project file, which is relative to that file"
    return Problem(path, 0, 0, "no such chart", remedy)


def _context(args: argparse.Namespace) -> tuple[tuple[Request, ...], list[Problem]]:
    if not args.context_from:
        return (), []
    from gpugate.webhook.manifests.dump_files import dumped  # noqa: PLC0415 -- costs start-up time

    requests: list[Request] = []
    problems: list[Problem] = []
    for part in dumped(args.context_from):
        if isinstance(part, Problem):
            problems.append(part)
        else:
            requests.append(part.request)
    return tuple(requests), [problem for problem in problems if not problem.warning]
