"""Baselines: known findings that are hidden, so that only new ones count."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from gpugate.policies.engine.config import ConfigError, GpugateError, parse
from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.structs import replace
from gpugate.webhook.manifests.bounded_file import MAX_BYTES, read_regular
from gpugate.webhook.manifests.documents import Document, Positions, read_bytes
from gpugate.webhook.report.located import BaselineKey, BaselineUse, Located, Report, Sort, Suppressed, SuppressedBy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from gpugate.policies.sdk.field import Json
    from gpugate.webhook.check.run import Coverage, ObjectKey

# Findings on input that cannot be read or evaluated are never hidden.
_HIDEABLE: Final = {Sort.VIOLATION, Sort.PATCH, Sort.SCHEMA, Sort.MALFORMED}


@dataclass(frozen=True, slots=True)
class Baseline:
    """How many findings of each key are known; `file` is its name."""

    file: str
    counts: Mapping[BaselineKey, int] = field(default_factory=dict)


def key(finding: Located) -> BaselineKey | None:
    """Return the key that a finding has in every run; None if it cannot be in a baseline.

    Exempt findings cannot, because they would stay hidden after the exemption expires.
    """
    if finding.sort not in _HIDEABLE or finding.object is None or finding.exempt:
        return None
    name = finding.object
    group = name.api_version.rpartition("/")[0]
    return BaselineKey(finding.code, group, name.kind, name.namespace, name.name, finding.stable_path)


def made_of(file: str, findings: Iterable[Located]) -> Baseline:
    """Return a baseline of findings."""
    return Baseline(file, Counter(baseline_key for finding in findings if (baseline_key := key(finding)) is not None))


def hidden(report: Report, baseline: Baseline, coverage: Coverage) -> Report:
    """Hide the findings in a baseline, and list its stale entries.

    Of findings with the same key, as many are hidden as the baseline counts. An entry is stale only if its policy was
    evaluated, and its object was read or does not exist.
    """
    unused = Counter(baseline.counts)
    remaining: list[Located] = []
    suppressed: list[Suppressed] = []
    for finding in report.findings:
        baseline_key = key(finding)
        if baseline_key is not None and unused[baseline_key] > 0:
            unused[baseline_key] -= 1
            suppressed.append(Suppressed(finding, f"in {baseline.file}", SuppressedBy.BASELINE))
        else:
            remaining.append(finding)
    stale = sorted((entry, count) for entry, count in unused.items() if count > 0 and entry.policy in coverage.policies)
    use = BaselineUse(
        baseline.file,
        len(suppressed),
        stale=tuple((entry, count) for entry, count in stale if _object(entry) in coverage.objects),
        unseen=tuple(
            (entry, count) for entry, count in stale if coverage.whole and _object(entry) not in coverage.objects
        ),
    )
    return replace(report, findings=tuple(remaining), suppressed=(*report.suppressed, *suppressed), baseline=use)


def pruned(baseline: Baseline, use: BaselineUse) -> Baseline:
    """Return a baseline without stale entries."""
    stale = Counter(dict(use.stale)) + Counter(dict(use.unseen))
    return Baseline(baseline.file, Counter(baseline.counts) - stale)


def _object(entry: BaselineKey) -> ObjectKey:
    return entry.group, entry.kind, entry.namespace, entry.name


SCHEMA: Final = "gpugate.dev/baseline/v1"
# What git writes where two branches differ.
_MERGE: Final = re.compile(rb"^(?:<{7}|>{7}) ", re.MULTILINE)
_YAML: Final = (".yaml", ".yml")
SUFFIXES: Final = (".json", *_YAML)
_HEAD: Final = (
    "# Findings that are known and hidden. Written by `gpugate check --write-baseline`; keep it in version control.\n"
)


class BaselineFileError(GpugateError):
    """A baseline cannot be read or is invalid; the text begins with file, line and column."""


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    policy: str
    group: str = ""
    kind: str
    namespace: str = ""
    name: str
    path: str = ""
    count: Annotated[int, msgspec.Meta(ge=1)] = 1


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    schema: Literal["gpugate.dev/baseline/v1"]
    findings: tuple[_Entry, ...] = ()


def read_baseline(path: Path, data: bytes | None = None) -> Baseline:
    """Read a baseline.

    Args:
        path: the file.
        data: its content where that is not the file on disk.

    Raises:
        BaselineFileError: it cannot be read, or is refused; says where and what to write.
    """
    try:
        data = read_regular(path, MAX_BYTES) if data is None else data
    except FileNotFoundError:
        raise BaselineFileError(f"{path}: no such file: create it with --write-baseline {path}") from None
    except OSError as error:
        raise BaselineFileError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    merge = _MERGE.search(data)
    if merge:
        line = data.count(b"\n", 0, merge.start()) + 1
        raise BaselineFileError(f"{path}:{line}:1: an unresolved merge conflict: keep the entries of both sides")
    documents: list[Document] = []
    for part in read_bytes(str(path), data):
        if not isinstance(part, Document):
            raise BaselineFileError(f"{path}:{part.line}:{part.column}: {part.message}: {part.remedy}")
        documents.append(part)
    if len(documents) != 1:
        raise BaselineFileError(
            f"{path}: holds {len(documents)} documents, not one: create a baseline with --write-baseline"
        )
    try:
        entries = _parsed(documents[0].value)
    except ConfigError as error:
        position = Positions(documents[0]).find(error.path)
        where = f"{render(error.path)}: " if error.path else ""
        raise BaselineFileError(f"{path}:{position.line}:{position.column}: {where}{error.message}") from None
    counts: dict[BaselineKey, int] = {}
    for entry in entries:
        key = BaselineKey(entry.policy, entry.group, entry.kind, entry.namespace, entry.name, entry.path)
        # Of two branches that added the same, both lines may be left.
        counts[key] = max(entry.count, counts.get(key, 0))
    return Baseline(str(path), counts)


def _parsed(value: Json) -> tuple[_Entry, ...]:
    findings = value.get("findings") if isinstance(value, dict) else None
    try:
        return parse(value, _File, ()).findings
    except ConfigError:
        # The parser's messages do not say which of a list is wrong.
        for index, entry in enumerate(findings if isinstance(findings, list) else ()):
            parse(entry, _Entry, ("findings", index))
        raise


def written(baseline: Baseline) -> str:
    """Return the text of a baseline, in the format of its file name."""
    entries = [msgspec.json.format(msgspec.json.encode(entry), indent=0).decode() for entry in _entries(baseline)]
    if baseline.file.endswith(_YAML):
        lines = "".join(f"  - {entry}\n" for entry in entries)
        return f"{_HEAD}schema: {SCHEMA}\nfindings:{' []' if not entries else ''}\n{lines}"
    lines = ",\n".join(f"    {entry}" for entry in entries)
    findings = f"[\n{lines}\n  ]" if entries else "[]"
    return f'{{\n  "schema": "{SCHEMA}",\n  "findings": {findings}\n}}\n'


def _entries(baseline: Baseline) -> Iterator[_Entry]:
    for key, count in sorted(baseline.counts.items()):
        yield _Entry(
            policy=key.policy,
            group=key.group,
            kind=key.kind,
            namespace=key.namespace,
            name=key.name,
            path=key.path,
            count=count,
        )
