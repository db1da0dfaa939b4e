"""Remove the names of objects, namespaces, users and the cluster from an audit."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import re
import secrets
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.sdk.findings import Patch
from gpugate.webhook.audit.comparison import Changed, Comparison
from gpugate.webhook.audit.model import Fix, OwnerUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.resources.abc import Traversable

    from gpugate.policies.sdk.field import Json
    from gpugate.webhook.audit.model import Audited, AuditReport, Cost, DeviceUse, Finding, PendingPods, Usage
    from gpugate.webhook.report.located import ObjectName

# A sequence of characters of names, paths and keys; punctuation at the end belongs to the sentence.
TOKEN: Final = re.compile(r"[^\W_](?:[\w./:@+*-]*[\w*])?|_[\w./:@+*-]*\w")
_PACKAGES: Final = ("policies", "webhook")


@cache
def vocabulary() -> frozenset[str]:
    """Return every token of gpugate's source, and the names of EC2 instance types, casefolded."""
    words: set[str] = set(map(str.casefold, load_instance_types().names))
    for package in _PACKAGES:
        for source in _sources(files(f"gpugate.{package}")):
            for token in TOKEN.findall(source.casefold()):
                words.update((token, *token.split("/")))
    return frozenset(words)


def _sources(folder: Traversable) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(entry)
        elif entry.name.endswith(".py"):
            yield entry.read_text(encoding="utf-8")


# Longer sequences of digits may be account numbers.
_NUMBER: Final = re.compile(r"v?\d{1,10}(?:[.,:x%+-]\d{1,10})*[%+]?[A-Za-z]{0,3}")
# Some clusters name nodes after their addresses.
_ADDRESS: Final = re.compile(r"\d+\.\d+\.\d+\.\d+(?:[:/]\d+)?")
_INSTANCE_TYPE: Final = re.compile(
    r"[a-z]{1,4}\d[a-z0-9-]{0,8}\.(?:metal(?:-\d+xl)?|(?:\d{0,3}x)?large|medium|small|micro|nano)"
)
_REGION: Final = re.compile(
    r"(?:af|ap|ca|cn|eu|il|me|mx|sa|us)-(?:gov-)?(?:north|south|east|west|central){1,2}-\d[a-z]?"
)
_FORMS: Final = (_NUMBER, _INSTANCE_TYPE, _REGION)
_SLICE: Final = re.compile(r"mig-\d+g\.\d+gb(?:\.\w+)?")
_COUNTED: Final = re.compile(r"\d+-(.+)")
_PATH_ROOTS: Final = ("spec", "metadata", "status")
# The word after a kind is a name, unless the sentence continues with it.
_GOES_ON: Final = re.compile(
    r"a|admission|all|alone|already|also|and|answers|are|as|ask|asks|at|be|beside|but|by|can|"
    r"cannot|could|does|each|for|from|had|has|have|if|in|instead|into|is|it|its|lacks|"
    r"launches|makes|may|must|named|names|needs|no|nor|not|of|off|on|one|only|or|says|scales|"
    r"selects|sets|should|so|such|takes|than|that|the|their|them|then|there|these|they|this|"
    r"to|under|until|uses|was|were|when|where|which|while|who|whose|will|with|without|would",
    re.IGNORECASE,
)


class Pseudonyms:
    """Pseudonyms for one salt.

    A text keeps words of gpugate's source, numbers and instance types. Every other word becomes a pseudonym, and so do all
    `names`, even if they are words of the source.
    """

    def __init__(self, salt: bytes, names: Iterable[str]) -> None:
        self._salt = salt
        self._names = frozenset(name for name in names if name)
        self._words = vocabulary()
        self._kinds: frozenset[str] = frozenset()
        self._replaced = lru_cache(maxsize=65536)(self._token)

    def with_kinds(self, kinds: Iterable[str]) -> Pseudonyms:
        """Treat the word after each of these kinds as a name; return self."""
        self._kinds = frozenset(kinds)
        return self

    def of(self, name: str, sort: str = "name") -> str:
        """Return the pseudonym of a name; empty for an empty name. A final `*` is kept."""
        if not name or name == "*":
            return name
        digest = hmac.new(self._salt, name.rstrip("*").encode(), hashlib.sha256).hexdigest()
        return f"{sort}-{digest[:12]}{'*' if name.endswith('*') else ''}"

    def text(self, text: str) -> str:
        """Return a sentence, a path or a value without names."""
        last, end = "", 0

        def replaced(match: re.Match[str]) -> str:
            nonlocal last, end
            token, follows = match[0], last in self._kinds and text[end : match.start()].isspace()
            last, end = token, match.end()
            if follows and not _GOES_ON.fullmatch(token):
                return self._named(token)
            return self._replaced(token)

        return TOKEN.sub(replaced, text)

    def value(self, value: Json) -> Json:
        """Return a JSON value whose texts and keys are without names."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(element) for element in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(member) for key, member in value.items()}
        return value

    def _named(self, token: str) -> str:
        """Return the pseudonym of a name such as `ml/finetune`; numbers are kept."""
        return "/".join(part if _NUMBER.fullmatch(part) else self.of(part) for part in token.split("/"))

    def _token(self, token: str) -> str:
        if token in self._names:
            return self.of(token)
        if self._is_ours(token):
            return token
        if "/" in token and "." not in token.partition("/")[0]:
            return "/".join(self._token(part) for part in token.split("/"))
        if token.startswith(_PATH_ROOTS) and "." in token:
            return ".".join(self._token(part) for part in token.split("."))
        return self.of(token)

    def _is_ours(self, token: str) -> bool:
        if token in self._names or _ADDRESS.fullmatch(token):
            return False
        if any(form.fullmatch(token) for form in _FORMS):
            return True
        domain, slash, remainder = token.partition("/")
        if slash:
            known = self._is_word(token) or (
                self._is_word(domain) and all(map(self._is_public, re.split("[/:]", remainder)))
            )
            return "." in domain and known
        return self._is_word(token) or self._is_compound(token)

    def _is_compound(self, token: str) -> bool:
        """Return whether a token consists of known words: `8-GPU`, `nodepools.karpenter.sh`, a path."""
        counted = _COUNTED.fullmatch(token)
        if counted:
            return self._is_word(counted[1])
        resource, _, group = token.partition(".")
        if "." in group and self._is_word(group) and resource not in self._names:
            return self._is_word(resource)
        parts = re.split("[.:@]", token)
        return len(parts) > 1 and all(map(self._is_ours, parts))

    def _is_word(self, text: str) -> bool:
        return text.casefold() in self._words

    def _is_public(self, text: str) -> bool:
        """Return whether a key under a public domain is known, even if an object has the same name."""
        return self._is_word(text) or bool(_NUMBER.fullmatch(text) or _SLICE.fullmatch(text))


_SALT_BYTES = 16


def pseudonyms(report: AuditReport, salt: str | None = None, comparison: Comparison | None = None) -> Pseudonyms:
    """Return pseudonyms for all names in a report.

    With a given salt, equal names have equal pseudonyms in every run, but anyone with the salt can test guessed names.
    Without it, pseudonyms are valid for one run.
    """
    known = Pseudonyms(secrets.token_bytes(_SALT_BYTES) if salt is None else salt.encode(), _names(report, comparison))
    return known.with_kinds({name.kind for name in _objects(report, comparison)} | set(report.counts))


def anonymize(report: AuditReport, names: Pseudonyms) -> AuditReport:
    """Return a report whose names are pseudonyms: in objects, messages, hints, paths, patches and remarks.

    Kinds, versions, labels and resources of public projects, instance types and numbers are kept. Uids are removed.
    """
    return replace(
        report,
        cluster=replace(
            report.cluster,
            name=names.of(report.cluster.name, "cluster"),
            user=names.of(report.cluster.user, "user"),
            uid="",
            id=names.of(report.cluster.id, "cluster") if report.cluster.is_configured else "",
            region=names.text(report.cluster.region),
            labels={},
        ),
        audited=tuple(_audited(owner, names) for owner in report.audited),
        not_evaluated=tuple(
            replace(gap, what=names.text(gap.what), reason=names.text(gap.reason)) for gap in report.not_evaluated
        ),
        cost=_cost(report.cost, names) if report.cost else None,
        pending=tuple(_pending(group, names) for group in report.pending),
        usage=_usage(report.usage, names) if report.usage else None,
        expired=tuple(map(names.text, report.expired)),
        unused=tuple(map(names.text, report.unused)),
        remarks=tuple(map(names.text, report.remarks)),
        anonymized=True,
    )


def anonymize_comparison(comparison: Comparison, names: Pseudonyms) -> Comparison:
    """Return a comparison whose names are pseudonyms."""

    def changed(changes: Iterable[Changed]) -> tuple[Changed, ...]:
        return tuple(Changed(_object(change.object, names), _finding(change.finding, names)) for change in changes)

    return dataclasses.replace(comparison, new=changed(comparison.new), fixed=changed(comparison.fixed))


def _names(report: AuditReport, comparison: Comparison | None) -> Iterator[str]:
    yield from (report.cluster.name, report.cluster.user, report.cluster.id, report.cluster.uid)
    for name in _objects(report, comparison):
        yield from (name.namespace, name.name, name.name.rstrip("*").rstrip("-"))
    for pool in report.cost.pools if report.cost else ():
        yield pool.node_pool
    for group in report.pending:
        yield from (failure.node_pool for failure in group.node_pools)
        yield from (owner.example for owner in group.owners)
    yield from (owner.team for owner in report.audited)
    yield from (unbounded.team for unbounded in report.cost.unbounded) if report.cost else ()
    for spend in report.cost.spending if report.cost else ():
        yield spend.name
    for audited in report.audited:
        for device in audited.devices:
            yield from (*device.pod.split("/", 1), device.node)


def _objects(report: AuditReport, comparison: Comparison | None) -> Iterator[ObjectName]:
    for audited in report.audited:
        yield audited.object
        yield from (finding.dependent for finding in audited.findings if finding.dependent)
        yield from (name for finding in audited.findings for name in finding.related)
    yield from (owner.object for group in report.pending for owner in group.owners)
    if report.cost:
        yield from (unbounded.object for unbounded in report.cost.unbounded)
        yield from (wasted.object for wasted in report.cost.wasted)
    for changed in (*comparison.new, *comparison.fixed) if comparison else ():
        yield changed.object


def _object(name: ObjectName, names: Pseudonyms) -> ObjectName:
    return replace(name, namespace=names.of(name.namespace), name=names.of(name.name))


def _audited(audited: Audited, names: Pseudonyms) -> Audited:
    return replace(
        audited,
        object=_object(audited.object, names),
        uid="",
        findings=tuple(_finding(finding, names) for finding in audited.findings),
        skipped={policy: names.text(reason) for policy, reason in audited.skipped.items()},
        gpu_use=_gpu_use(audited.gpu_use, names) if audited.gpu_use else audited.gpu_use,
        team=names.of(audited.team),
    )


def _gpu_use(use: OwnerUse, names: Pseudonyms) -> OwnerUse:
    """Return the use without the query, which consists of names."""
    return OwnerUse(use.used, tuple(_device(device, names) for device in use.devices), "")


def _device(device: DeviceUse, names: Pseudonyms) -> DeviceUse:
    pod = "/".join(names.of(part) for part in device.pod.split("/", 1))
    card, slash, number = device.device.partition("/")
    return replace(
        device,
        pod=pod,
        node=names.of(device.node, "node"),
        device=f"{names.of(card, 'gpu')}{slash}{number}",
        reason=names.text(device.reason),
    )


def _usage(usage: Usage, names: Pseudonyms) -> Usage:
    return replace(usage, source=names.of(usage.source, "prometheus"), problems=tuple(map(names.text, usage.problems)))


def _finding(finding: Finding, names: Pseudonyms) -> Finding:
    return replace(
        finding,
        path=names.text(finding.path),
        dependent=_object(finding.dependent, names) if finding.dependent else None,
        related=tuple(_object(name, names) for name in finding.related),
        message=names.text(finding.message),
        hint=names.text(finding.hint),
        note=names.text(finding.note),
        remedy=_fix(finding.remedy, names) if finding.remedy else None,
        patches=tuple(_patch(patch, names) for patch in finding.patches),
    )


def _fix(fix: Fix, names: Pseudonyms) -> Fix:
    objects = [names.value(obj) for obj in fix.objects or ()]
    return Fix(
        fix.safe,
        patches=None if fix.patches is None else tuple(_patch(patch, names) for patch in fix.patches),
        objects=None if fix.objects is None else tuple(obj for obj in objects if isinstance(obj, dict)),
    )


def _patch(patch: Patch, names: Pseudonyms) -> Patch:
    path = tuple(names.text(part) if isinstance(part, str) else part for part in patch.path)
    return Patch(patch.op, path, names.value(patch.value), names.text(patch.reason))


def _pending(group: PendingPods, names: Pseudonyms) -> PendingPods:
    return replace(
        group,
        reason=names.text(group.reason),
        hint=names.text(group.hint),
        owners=tuple(
            replace(owner, object=_object(owner.object, names), example=names.of(owner.example))
            for owner in group.owners
        ),
        node_pools=tuple(
            replace(
                failure,
                node_pool=names.of(failure.node_pool),
                reason=names.text(failure.reason),
                change=names.text(failure.change),
            )
            for failure in group.node_pools
        ),
    )


def _cost(cost: Cost, names: Pseudonyms) -> Cost:
    return replace(
        cost,
        prices=names.text(cost.prices),
        unbounded=tuple(
            replace(
                unbounded,
                object=_object(unbounded.object, names),
                reason=names.text(unbounded.reason),
                team=names.of(unbounded.team),
            )
            for unbounded in cost.unbounded
        ),
        wasted=tuple(
            replace(wasted, object=_object(wasted.object, names), reason=names.text(wasted.reason))
            for wasted in cost.wasted
        ),
        pools=tuple(replace(pool, node_pool=names.of(pool.node_pool)) for pool in cost.pools),
        spending=tuple(replace(spend, name=names.of(spend.name)) for spend in cost.spending),
    )
