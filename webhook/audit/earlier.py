"""The earlier audits that an audit is compared with, from documents and histories, and what makes audits comparable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.audit.formats.json import AuditDocumentError, read
from gpugate.webhook.audit.history import Run, prepare
from gpugate.webhook.audit.history import read as read_history
from gpugate.webhook.cli.options import UsageError

if TYPE_CHECKING:
    import argparse
    import datetime as dt
    from pathlib import Path

    from gpugate.webhook.audit.model import AuditReport


def earlier_audits(args: argparse.Namespace, now: dt.datetime) -> tuple[bytes | None, tuple[Run, ...], tuple[str, ...]]:
    """Return the newest earlier document, the figures of all earlier audits, and remarks on records that are passed over."""
    runs: list[Run] = []
    remarks: list[str] = []
    directories = [path for path in args.compare if path.is_dir()]
    if args.history is not None:
        prepare(args.history, now)
        directories += [] if args.history in directories else [args.history]
    documents = [_document(path) for path in args.compare if path not in directories]
    for directory in directories:
        history = read_history(directory, now)
        runs += history.runs
        remarks += history.problems
    for report, _ in documents:
        # The user selects a document, which does not record how its objects were selected.
        runs.append(Run.of(report, cluster=recorded_name(args, report.cluster.name), selection=selection_flags(args)))
    newest = max(documents, key=lambda document: document[0].time)[1] if documents else None
    return newest, tuple(runs), tuple(remarks)


def _document(path: Path) -> tuple[AuditReport, bytes]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"--compare {path}: {(error.strerror or 'cannot be read').lower()}") from None
    try:
        return read(data), data
    except AuditDocumentError as error:
        raise UsageError(f"--compare {path}: {error}") from None


def recorded_name(args: argparse.Namespace, cluster: str) -> str:
    """Return the name of a cluster in records; a dump has none, because each of its versions may be another file."""
    return "" if args.dump else cluster


def selection_flags(args: argparse.Namespace) -> str:
    """Return the flags that select objects and policies, for records: only figures of equal selections are comparable."""
    flags = {
        "-n": args.namespace,
        "--exclude-namespace": args.exclude_namespace,
        "--include": args.include,
        "--exclude": args.exclude,
        "-l": [args.selector] if args.selector else [],
        "--select": args.select,
        "--ignore": args.ignore,
        "--as-mode": [args.as_mode] if args.as_mode != "enforce" else [],
    }
    return " ".join(f"{flag} {','.join(sorted(set(values)))}" for flag, values in flags.items() if values)
