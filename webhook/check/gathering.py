"""The inputs that the flags of a check name: files, charts and kustomizations, rendered, and cluster data from dumps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gpugate.policies.sdk.structs import Struct, replace
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
    from gpugate.webhook.manifests.inputs import ObjectsInValues
    from gpugate.webhook.rendering.options import ChartValues


class Gathered(Struct, frozen=True):
    """The inputs to check, the data that they are checked with, and remarks on settings that do not apply."""

    inputs: list[Found]
    beside: Beside
    remarks: tuple[str, ...] = ()


def gather_inputs(paths: Sequence[str], args: argparse.Namespace, kube_version: str, jobs: int) -> Gathered:
    """Expand the paths, and render charts and kustomizations.

    Args:
        paths: files and folders.
        args: the flags.
        kube_version: the version of Kubernetes of the target.
        jobs: the number of programs that may run at once.

    Raises:
        UsageError: flags do not fit together.
        GitError: git cannot list the changed files.
    """
    _refuse_flags(args)
    selection, remarks = _selection([*paths, *args.kustomize], args)
    inputs: list[Found | Chart | Kustomization] = list((expand if args.no_render else sources)(paths, selection))
    inputs += _named(args, inputs)
    if args.stdin_filename:
        inputs = [
            replace(part, display_name=args.stdin_filename) if isinstance(part, Input) and part.name == STDIN else part
            for part in inputs
        ]
    inputs = [_with_objects(part, args.objects_in_values) if isinstance(part, Input) else part for part in inputs]
    in_terraform: tuple[ChartValues, ...] = ()
    if any(isinstance(part, Input) and part.language for part in inputs):
        from gpugate.webhook.rendering.terraform import configured  # noqa: PLC0415 -- few repositories have it

        read = configured(inputs)
        inputs, in_terraform = read.parts, read.charts
    context, problems = _context(args)
    charts: tuple[ChartValues, ...] = ()
    # Flags override the project file for the same chart, and the project file overrides Terraform.
    for layer in (_values_of_flags(args, inputs), args.charts, in_terraform):
        paths_before = {os.path.realpath(chart.path) for chart in charts}
        charts = (*charts, *(chart for chart in layer if os.path.realpath(chart.path) not in paths_before))
    problems += [_no_chart(chart.path) for chart in args.charts if not Path(chart.path).exists()]
    if not any(isinstance(part, Chart | Kustomization) for part in inputs):
        plain = [part for part in inputs if not isinstance(part, Chart | Kustomization)]
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
    rendering = rendered(_without_values(inputs, charts), options)
    beside = Beside(
        context, RenderedTexts(rendering.texts, options) if rendering.texts else None, rendering.not_rendered
    )
    return Gathered([*rendering.parts, *problems], beside, remarks)


def _without_values(
    inputs: Sequence[Found | Chart | Kustomization], charts: Sequence[ChartValues]
) -> list[Found | Chart | Kustomization]:
    """Mark the files with which charts are rendered, so that the manifests in them are not evaluated twice."""
    used = {os.path.realpath(name) for chart in charts for names in chart.values for name in names}
    return [
        replace(part, of_chart=True)
        if used and isinstance(part, Input) and os.path.realpath(part.name) in used
        else part
        for part in inputs
    ]


def _with_objects(file: Input, maps: Sequence[ObjectsInValues]) -> Input:
    """Attach the declared objects in chart values to a file."""
    objects = tuple(entry for entry in maps if not file.language and Selection(entry.files).excludes(file.name))
    return replace(file, objects=objects) if objects else file


def _refuse_flags(args: argparse.Namespace) -> None:
    if args.no_render and (args.helm or args.kustomize or args.values or args.set):
        raise UsageError("--no-render excludes --helm, --kustomize, --values and --set")


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
        return selection, (f"files that git ignores are read too: {error}",)


def _named(args: argparse.Namespace, inputs: Sequence[object]) -> list[Found | Chart | Kustomization]:
    """Return the charts and kustomizations of flags that the paths do not contain."""
    named: list[Found | Chart | Kustomization] = []
    present = {os.path.realpath(part.name) for part in inputs if isinstance(part, Chart)}
    named += [Chart(chart) for chart in args.helm if os.path.realpath(chart) not in present]
    present = {os.path.realpath(part.name) for part in inputs if isinstance(part, Kustomization)}
    for directory in args.kustomize:
        file = next((name for name in KUSTOMIZATION_FILES if Path(directory, name).is_file()), None)
        if file is None:
            names = ", ".join(KUSTOMIZATION_FILES)
            named.append(Problem(directory, 0, 0, "no kustomization in this directory", f"create one of {names}"))
        elif os.path.realpath(directory) not in present:
            named.append(Kustomization(directory, file))
    return named


def _values_of_flags(args: argparse.Namespace, inputs: Sequence[object]) -> list[ChartValues]:
    """Return the chart values of flags.

    Raises:
        UsageError: the input does not contain exactly one chart.
    """
    if not (args.values or args.set or args.release):
        return []
    charts = args.helm or [part.name for part in inputs if isinstance(part, Chart)]
    if len(charts) != 1:
        raise UsageError(
            f"--values, --set and --release need exactly one chart, and the input contains {len(charts)}: "
            "name it with --helm, or list values of several under `charts:` in .gpugate.yaml"
        )
    from gpugate.webhook.rendering.options import ChartValues  # noqa: PLC0415 -- few runs render a chart

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
