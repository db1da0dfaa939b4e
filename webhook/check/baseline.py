"""Baselines: known findings that are hidden, so that only new ones count."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from gpugate.policies.engine.config import ConfigError, GpugateError, parse
from gpugate.policies.sdk.field import render
from gpugate.webhook.manifests.bounded_file import MAX_BYTES, read_regular
from gpugate.webhook.manifests.documents import Document, Positions, read_bytes
from gpugate.webhook.report.located import BaselineKey, BaselineUse, Located, Report, Sort, Suppressed, SuppressedBy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from gpugate.policies.sdk.field import Json
    from gpugate.webhook.check.run import ObjectKey, Seen

# The others are never hidden: what cannot be read or judged.
_HIDEABLE: Final = {Sort.VIOLATION, Sort.PATCH, Sort.SCHEMA, Sort.MALFORMED}


@dataclass(frozen=True, slots=True)
class Baseline:
    """How many findings of each key are known; `file` is its name."""

    file: str
    counts: Mapping[BaselineKey, int] = field(default_factory=dict)


def key(finding: Located) -> BaselineKey | None:
    """Return what makes a finding the same as one of another run; None where it can be in no baseline.

    What the policy file exempts is in none, because it would stay hidden when the exemption is over.
    """
    if finding.sort not in _HIDEABLE or finding.object is None or finding.exempt:
        return None
    name = finding.object
    group = name.api_version.rpartition("/")[0]
    return BaselineKey(finding.code, group, name.kind, name.namespace, name.name, finding.stable_path)


def made_of(file: str, findings: Iterable[Located]) -> Baseline:
    """Return a baseline of findings."""
    return Baseline(file, Counter(found for each in findings if (found := key(each)) is not None))


def hidden(report: Report, baseline: Baseline, seen: Seen) -> Report:
    """Hide what a baseline knows, and say which of its entries are of no use any more.

    Of findings with the same key, as many are hidden as the baseline counts. Whether an entry is of no use can be said
    only where its policy looked, and its object was read or does not exist.
    """
    left = Counter(baseline.counts)
    kept: list[Located] = []
    suppressed: list[Suppressed] = []
    for finding in report.findings:
        found = key(finding)
        if found is not None and left[found] > 0:
            left[found] -= 1
            suppressed.append(Suppressed(finding, f"in {baseline.file}", SuppressedBy.BASELINE))
        else:
            kept.append(finding)
    of_no_use = sorted((found, count) for found, count in left.items() if count > 0 and found.policy in seen.policies)
    use = BaselineUse(
        baseline.file,
        len(suppressed),
        stale=tuple((found, count) for found, count in of_no_use if _object(found) in seen.objects),
        unseen=tuple((found, count) for found, count in of_no_use if seen.whole and _object(found) not in seen.objects),
    )
    return replace(report, findings=tuple(kept), suppressed=(*report.suppressed, *suppressed), baseline=use)


def pruned(baseline: Baseline, use: BaselineUse) -> Baseline:
    """Return a baseline without what is of no use any more."""
    of_no_use = Counter(dict(use.stale)) + Counter(dict(use.unseen))
    return Baseline(baseline.file, Counter(baseline.counts) - of_no_use)


def _object(found: BaselineKey) -> ObjectKey:
    return found.group, found.kind, found.namespace, found.name


SCHEMA: Final = "gpugate.dev/baseline/v1"
# What git writes where two branches differ.
_MERGE: Final = re.compile(rb"^(?:<{7}|>{7}) ", re.MULTILINE)
_YAML: Final = (".yaml", ".yml")
SUFFIXES: Final = (".json", *_YAML)
_HEAD: Final = (
    "# Findings that are known and hidden. Written by `gpugate check --write-baseline`; keep it in version control.\n"
)


class BaselineFileError(GpugateError):
    """A baseline cannot be read, or what it says is refused; the text begins with file, line and column."""


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
    for found in read_bytes(str(path), data):
        if not isinstance(found, Document):
            raise BaselineFileError(f"{path}:{found.line}:{found.column}: {found.message}: {found.remedy}")
        documents.append(found)
    if len(documents) != 1:
        raise BaselineFileError(
            f"{path}: holds {len(documents)} documents, not one: create a baseline with --write-baseline"
        )
    try:
        entries = _parsed(documents[0].value)
    except ConfigError as error:
        place = Positions(documents[0]).find(error.path)
        where = f"{render(error.path)}: " if error.path else ""
        raise BaselineFileError(f"{path}:{place.line}:{place.column}: {where}{error.message}") from None
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
    """Return the text of a baseline, in the format that the name of its file says."""
    entries = [msgspec.json.format(msgspec.json.encode(entry), indent=0).decode() for entry in _entries(baseline)]
    if baseline.file.endswith(_YAML):
        lines = "".join(f"  - {entry}\n" for entry in entries)
        return f"{_HEAD}schema: {SCHEMA}\nfindings:{' []' if not entries else ''}\n{lines}"
    lines = ",\n".join(f"    {entry}" for entry in entries)
    found = f"[\n{lines}\n  ]" if entries else "[]"
    return f'{{\n  "schema": "{SCHEMA}",\n  "findings": {found}\n}}\n'


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
