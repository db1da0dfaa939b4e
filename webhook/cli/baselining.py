"""What `--baseline`, `--write-baseline` and `--prune-baseline` do with the report of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpugate.webhook.cli import options
from gpugate.webhook.cli.options import UsageError

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from gpugate.policies.sdk.findings import Stance
    from gpugate.webhook.check.baseline import Baseline
    from gpugate.webhook.check.run import CheckResult
    from gpugate.webhook.manifests.git import Revision


@dataclass(frozen=True, slots=True)
class Baselining:
    """What is to be done: the baseline that hides findings and whether to prune it, or the file that gets all of them."""

    known: Baseline | None = None
    write: Path | None = None
    prune: bool = False

    def hidden(self, result: CheckResult, min_stance: Stance) -> CheckResult:
        """Return a result without what the baseline hides; a second time nothing more is hidden."""
        if self.known is None or result.report.baseline is not None:
            return result
        return _hidden(result, self.known, min_stance)

    def finished(self, result: CheckResult, min_stance: Stance) -> CheckResult:
        """Hide what is still to be hidden, and write what is to be written.

        Raises:
            UsageError: the file cannot be written; then it is as it was.
        """
        if self.write is not None:
            from gpugate.webhook.check import baseline  # noqa: PLC0415 -- few runs write one

            made = baseline.made_of(str(self.write), result.report.findings)
            _write(made)
            return _hidden(result, made, min_stance)
        result = self.hidden(result, min_stance)
        remark = self._prune(result) if self.prune else ""
        remarks = (*result.report.remarks, *([remark] if remark else ()))
        return replace(result, report=replace(result.report, remarks=remarks))

    def _prune(self, result: CheckResult) -> str:
        from gpugate.webhook.check import baseline  # noqa: PLC0415 -- few runs have one
        from gpugate.webhook.check.run import INCOMPLETE  # noqa: PLC0415

        use = result.report.baseline
        if self.known is None or use is None:
            return ""
        if any(finding.sort in INCOMPLETE for finding in result.report.findings):
            return f"{self.known.file}: not pruned, because something could not be read or judged"
        left = baseline.pruned(self.known, use)
        if left.counts == self.known.counts:
            return ""
        _write(left)
        return f"{self.known.file}: pruned of what matches nothing: {len(left.counts)} entries of {len(self.known.counts)} are left"


def _hidden(result: CheckResult, known: Baseline, min_stance: Stance) -> CheckResult:
    from gpugate.webhook.check import baseline  # noqa: PLC0415 -- few runs have one
    from gpugate.webhook.check.run import exit_code  # noqa: PLC0415

    report = baseline.hidden(result.report, known, result.seen)
    code = exit_code(report.findings, report.objects, min_stance)
    return replace(result, report=replace(report, exit_code=code))


def asked(args: argparse.Namespace, base: Revision | None = None) -> Baselining:
    """Return what flags and project ask for; with a base revision a baseline of its repository is read from there.

    Raises:
        GpugateError: they do not fit together, or the baseline cannot be read.
    """
    if not (args.baseline or args.write_baseline or args.prune_baseline):
        return Baselining()
    from gpugate.webhook.check.baseline import SUFFIXES, read_baseline  # noqa: PLC0415 -- few runs have one

    if base is not None and (args.write_baseline is not None or args.prune_baseline):
        raise UsageError("--trust base: a baseline is read from the base; write or prune one without it")
    if args.write_baseline is not None:
        if args.prune_baseline:
            raise UsageError("--prune-baseline: a baseline that is written anew has nothing to prune")
        if args.write_baseline.suffix not in SUFFIXES:
            raise UsageError(f"--write-baseline {args.write_baseline}: end the name in {', '.join(SUFFIXES)}")
        return Baselining(write=args.write_baseline)
    if args.baseline is None:
        raise UsageError("--prune-baseline: name the baseline with --baseline FILE")
    if args.no_ignores:
        if args.prune_baseline:
            raise UsageError("--prune-baseline: leave out --no-ignores, with which no baseline is read")
        return Baselining()
    data = None
    if base is not None:
        from gpugate.webhook.manifests.bounded_file import MAX_BYTES  # noqa: PLC0415 -- few runs have a base
        from gpugate.webhook.project.base import read_from  # noqa: PLC0415

        data = read_from(base, args.baseline, MAX_BYTES)
    return Baselining(read_baseline(args.baseline, data), prune=args.prune_baseline)


def _write(known: Baseline) -> None:
    from gpugate.webhook.check.baseline import written  # noqa: PLC0415 -- few runs write one

    options.write(known.file, written(known))
