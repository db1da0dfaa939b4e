"""The summary at the end of a report: counts, and what was not evaluated."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.unknown_kinds import WITHOUT_TEMPLATE
from gpugate.webhook.manifests.problems import Passing
from gpugate.webhook.report.located import Report, Severity, Skipped, Sort, SuppressedBy
from gpugate.webhook.report.plain import plain
from gpugate.webhook.report.view import View

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.sdk.unknown_kinds import HelmApplications, UnknownKind
    from gpugate.webhook.report.located import BaselineUse

_REASONS: Final = 4  # per policy; there may be one for each namespace
_KINDS: Final = 8  # named in a line; a repository may define any number
_LINES: Final = 10  # of one sort; a baseline may have thousands of entries


def summary(report: Report, view: View | None = None) -> Iterator[str]:
    """Yield the lines: the counts first, then what was not evaluated."""
    view = view or View()
    counts = ", ".join(_count(report.count(severity), severity.value) for severity in Severity)
    looked = f"{_count(report.objects, 'object')} in {_count(report.files, 'file')}"
    against = f"against {_count(report.policies, 'policy')}{f' for {report.target}' if report.target else ''}"
    took = f" in {view.seconds:.2f} s" if view.seconds is not None else ""
    by_comment = sum(suppressed.by is SuppressedBy.COMMENT for suppressed in report.suppressed)
    passing = f", {by_comment:,} suppressed" if by_comment else ""
    if report.baseline is not None:
        passing += f", {report.baseline.hidden:,} hidden by the baseline"
    yield f"Checked {looked} {against}{took}: {counts}{passing}"
    yield from _conventions(report)
    yield from _fixes(report)
    lost = sum(f.sort is Sort.UNREADABLE and not f.of_rendering for f in report.findings)
    if lost:
        yield f"{_count(lost, 'part')} could not be read and {'was' if lost == 1 else 'were'} not evaluated"
    yield from _not_rendered(report)
    yield from _skipped(report, view)
    yield from unknown_kinds(report.unknown_kinds)
    yield from _applications(report.applications)
    for remark in report.remarks:
        yield plain(remark)
    if report.passed_over:
        yield f"Passed over {_count(report.passed_over, 'part')}{_by_reason(report)}"
    if report.hidden:
        yield f"Passed over {_count(report.hidden, 'YAML file')} in hidden directories; name such a directory to read it"
    for reason in report.left_out:
        yield f"  {plain(reason)}"
    yield from _baseline(report.baseline)
    yield from _some(f"expired exemption: {exemption}" for exemption in report.expired)
    yield from _some(f"unused exemption: {exemption}" for exemption in report.unused)
    if not report.objects and not lost and not report.not_rendered:
        yield "Nothing was checked: exit code 3"


def _conventions(report: Report) -> Iterator[str]:
    by_convention = [finding for finding in report.findings if finding.convention]
    if by_convention:
        policies = ", ".join(sorted({finding.policy for finding in by_convention}))
        verb = "assumes" if len(by_convention) == 1 else "assume"
        objects = sum(1 + len(finding.related) for finding in by_convention)
        about = f"{_count(len(by_convention), 'note')} ({_count(objects, 'object')})"
        yield f"{about} {verb} gpugate's default names of labels, tags and classes, because no policy file sets yours. Policies: {policies}"
        yield "  `gpugate config init` writes a policy.yaml in which you can set them; `mode: off` turns a policy off"


_REASON: Final = {
    Passing.NON_MANIFEST: "non-manifest",
    Passing.TEMPLATE: "template",
    Passing.TOOL_FILE: "tool file",
    Passing.EMBEDDED: "embedded manifest",
    Passing.LEFT_OUT: "other part",
}


def _by_reason(report: Report) -> str:
    counts = Counter(part.reason for part in report.passed)
    reasons = ", ".join(_count(counts[reason], noun) for reason, noun in _REASON.items() if counts[reason])
    return f": {reasons}; --show-skipped lists them" if reasons else ""


def passed_over(report: Report) -> Iterator[str]:
    """Yield a line for each part of the input that was not checked."""
    for part in report.passed:
        where = f"{part.file}:{part.line}" if part.line else part.file
        files = f" ({_count(part.files, 'YAML file')})" if part.files else ""
        detail = f": {part.detail}" if part.detail and not part.files else ""
        yield plain(f"passed over[{part.reason.value}]: {where}{files}{detail}")


def _not_rendered(report: Report) -> Iterator[str]:
    charts = report.not_rendered
    if charts:
        is_single = len(charts) == 1
        files = sum(chart.files for chart in charts)
        subject = "1 chart or kustomization was" if is_single else f"{len(charts):,} charts and kustomizations were"
        read = f"; {_count(files, 'file')} of {'it' if is_single else 'them'} evaluated as {'it is' if files == 1 else 'they are'}"
        yield f"{subject} not rendered{read if files else ''}:"
        yield from _some(f"  {chart.name} ({_count(chart.files, 'file')} evaluated)" for chart in charts)


def _fixes(report: Report) -> Iterator[str]:
    if report.fixed:
        yield f"Made {_count(report.fixed, 'change')}"
    for line in report.unfixed:
        yield f"  {plain(line)}"
    if report.unfixed:
        return  # printed in the line before
    every = [location for finding in report.findings for location in (finding, *finding.related)]
    safe = sum(finding.safely_fixable for finding in every)
    unsafe = sum(finding.unsafely_fixable for finding in every)
    if safe:
        further = f", {unsafe:,} more with --fix --unsafe-fixes" if unsafe else ""
        yield f"{_count(safe, 'finding')} can be fixed with --fix{further}"
    elif unsafe:
        yield f"{_count(unsafe, 'finding')} can be fixed with --fix --unsafe-fixes"


def _baseline(used: BaselineUse | None) -> Iterator[str]:
    if used is not None and used.stale:
        stale = _count(len(used.stale), "entry")
        verb = "matches" if len(used.stale) == 1 else "match"
        yield f"{stale} of {plain(used.file)} {verb} no finding; --prune-baseline removes such entries:"
        yield from _some(f"  {key}" for key, _ in used.stale)
    if used is not None and used.unseen:
        verb = "is" if len(used.unseen) == 1 else "are"
        yield f"{_count(len(used.unseen), 'entry')} of {plain(used.file)} {verb} for objects outside the checked files"


def _some(lines: Iterable[str]) -> Iterator[str]:
    printable = [plain(line) for line in lines]
    yield from printable[:_LINES]
    if len(printable) > _LINES:
        yield f"  and {len(printable) - _LINES:,} more; -o json has them all"


def _skipped(report: Report, view: View) -> Iterator[str]:
    by_policy: dict[str, list[Skipped]] = {}
    for skipped in report.skipped:
        by_policy.setdefault(skipped.policy, []).append(skipped)
    most = None if view.verbose else _REASONS
    verb = "was" if len(by_policy) == 1 else "were"
    lines: list[str] = []
    for policy, reasons in by_policy.items():
        lines += [f"  {policy}: {plain(s.reason)} ({_count(s.objects, 'object')})" for s in reasons[:most]]
        if len(reasons) > len(reasons[:most]):
            lines.append(f"  {policy}: and {_count(len(reasons) - len(reasons[:most]), 'other reason')}")
    if len(lines) <= _LINES or view.verbose:
        yield from [f"{_count(len(by_policy), 'policy')} {verb} not evaluated on some objects:"] if by_policy else []
        yield from lines
    else:
        yield f"{_count(len(by_policy), 'policy')} {verb} not evaluated on some objects (-v lists reasons): {', '.join(by_policy)}"


def unknown_kinds(kinds: Iterable[UnknownKind]) -> Iterator[str]:
    """Report the unknown kinds that contain Pods or request GPUs; those that request GPUs first."""
    kinds = tuple(kinds)
    named = [(f"{plain(kind.kind)} ({plain(kind.api_version)})", kind) for kind in kinds]
    gpus = {name: kind.gpu_objects for name, kind in named if kind.gpu_objects}
    others = {name: kind.objects - kind.gpu_objects for name, kind in named if kind.objects > kind.gpu_objects}
    requests = "object requests GPUs", "objects request GPUs"
    for counts, (single, many) in ((gpus, requests), (others, ("object holds Pods", "objects hold Pods"))):
        if counts:
            total = sum(counts.values())
            worst = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            listed = ", ".join(f"{name} {count:,}" for name, count in worst[:_KINDS])
            more = f" and {_count(len(worst) - _KINDS, 'other kind')}" if len(worst) > _KINDS else ""
            yield f"{total:,} {single if total == 1 else many} in kinds that no policy knows: {listed}{more}"
    if any((kind.api_version.rpartition("/")[0], kind.kind) not in WITHOUT_TEMPLATE for kind in kinds):
        yield "  to evaluate their Pod templates, add a kind and its path to pod_templates of the policy file"


def _applications(applications: HelmApplications) -> Iterator[str]:
    if applications.objects:
        deploy = "deploys" if applications.objects == 1 else "deploy"
        gpus = f"; the values of {applications.gpu_objects:,} request GPUs" if applications.gpu_objects else ""
        counted = " and ".join(_of_tool(count, kind) for kind, count in applications.kinds.items())
        yield f"{counted} {deploy} Helm charts, which are not evaluated{gpus}"
        yield "  render each chart with its values, and check what it renders"


def _of_tool(number: int, name: str) -> str:
    kind, _, tool = name.partition(" ")
    return f"{_count(number, kind)} {tool}"


def _count(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
