"""Evaluate the objects of a pytest test by policies. CRD schemas are not checked here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import API_VERSION, KIND, GpugateError, near_misses, parse_config
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import Operation
from gpugate.webhook.check import command as check
from gpugate.webhook.check import flags as check_flags
from gpugate.webhook.check.locate import Locator
from gpugate.webhook.cli import project_flags
from gpugate.webhook.manifests.documents import Document, read_text
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.load import parts
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.report import text, words, yaml_text
from gpugate.webhook.report.located import Located, Report, Severity, Sort
from gpugate.webhook.report.view import View
from gpugate.webhook.testing.pytest_plugin.surroundings import policy_file
from gpugate.webhook.testing.setup import Prepared, Setup, facts_of

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pytest

    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.objects import Request

# What is found without a policy is asked for by these names.
_TROUBLES = frozenset(sort.value for sort in Sort if sort not in {Sort.VIOLATION, Sort.PATCH})


class Location(NamedTuple):
    """Where something was found: the file as it was named, and line and column from 1."""

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: who found it, where, what it says and what it costs (`enforce`, `warn`, `audit`)."""

    policy: str
    location: Location
    path: str
    message: str
    mode: str
    hint: str
    located: Located = field(repr=False)

    def __str__(self) -> str:
        return text.write(Report((self.located,)), view=View(quiet=True)).rstrip("\n")


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """What was found in one object or in several.

    A test asks `answer.allowed`, `answer.denied_by("pods/...")` and `answer["pods/..."].location`. When it fails, pytest
    shows everything that was found, with frames of the files.
    """

    title: str
    located: tuple[Located, ...]

    @property
    def allowed(self) -> bool:
        """Whether nothing is denied."""
        return not any(each.severity is Severity.ERROR for each in self.located)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that was found; changes that admission makes are not among it."""
        return tuple(_finding(each) for each in self.located if not _is_made(each))

    def denied_by(self, *policies: str) -> bool:
        """Whether each of some policies denies it; with none, whether any does."""
        return self._have([each for each in self.located if each.severity is Severity.ERROR], policies)

    def warned_by(self, *policies: str) -> bool:
        """Whether each of some policies warns; with none, whether any does."""
        return self._have([each for each in self.located if each.stance is Stance.WARN], policies)

    def recorded_by(self, *policies: str) -> bool:
        """Whether each of some policies only records it; with none, whether any does."""
        return self._have([each for each in self.located if each.stance is Stance.AUDIT], policies)

    def mutated_by(self, *policies: str) -> bool:
        """Whether each of some policies changes it; with none, whether any does."""
        return self._have([each for each in self.located if _is_made(each)], policies)

    def __getitem__(self, policy: str) -> Finding:
        """Return the first finding of a policy; a KeyError says what was found instead."""
        _refuse_unknown(policy)
        found = next((each for each in self.located if words.code(each) == policy), None)
        if found is None:
            raise KeyError(f"{policy} finds nothing in {self!r}")
        return _finding(found)

    @property
    def report(self) -> str:
        """Everything that was found, with frames of the files."""
        return text.write(Report(self.located), view=View(quiet=True)).rstrip("\n") or "nothing was found"

    def __repr__(self) -> str:
        lines = "; ".join(dict.fromkeys(self._in_short()))
        return f"<{self.title}: {'allowed' if self.allowed else 'DENIED'}{f' ({lines})' if lines else ''}>"

    def _in_short(self) -> Iterator[str]:
        for each in self.located:
            verb = "changes" if _is_made(each) else each.severity.value
            yield f"{words.code(each)} {verb}"

    def _have(self, located: list[Located], policies: tuple[str, ...]) -> bool:
        for policy in policies:
            _refuse_unknown(policy)
        found = {words.code(each) for each in located}
        return found.issuperset(policies) if policies else bool(found)


def _is_made(located: Located) -> bool:
    return located.sort is Sort.PATCH and bool(located.patches)


def _finding(located: Located) -> Finding:
    place = located.place
    return Finding(
        policy=words.code(located),
        location=Location(place.file, place.line, place.column),
        path=located.path,
        message=located.message,
        mode=located.stance.word if located.stance is not None else "",
        hint=located.hint,
        located=located,
    )


def _refuse_unknown(policy: str) -> None:
    """Keep a typo from passing in `assert not answer.denied_by(...)`."""
    known = {each.id for each in CATALOG} | _TROUBLES
    if policy not in known:
        near = near_misses(policy, known)
        meant = f"did you mean {near[0]}?" if near else "`gpugate policies` lists them"
        raise ValueError(f"unknown policy {policy}; {meant}")


def checked(arguments: Sequence[str], config: pytest.Config) -> Report:
    """Judge what the arguments of `gpugate check` name.

    Raises:
        GpugateError: they, the project file or the policy file are refused.
    """
    file = policy_file(config)
    chosen = ["--policy-file", str(file)] if file else []
    args, project = project_flags.parse(check_flags.parser(), "check", ["--quiet", *chosen, *arguments])
    result, _ = check.check_project(args, project)
    return result.report


class ObjectError(GpugateError):
    """What a test gives is no object, or a file has not the one it asks for; the text says where and why."""


class LoadedObject(dict[str, Any]):
    """An object from a file, to be changed like any dict; findings in it have the places of the file."""

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest.request.object or {})
        self.manifest = manifest


class ManifestFiles:
    """Reads objects from files; a path is looked for in each of some directories."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories

    def __call__(self, path: str, *, kind: str = "", name: str = "", namespace: str = "") -> LoadedObject:
        """Return the one object in a file, or the one of a kind, name or namespace.

        Raises:
            ObjectError: the file holds none that fits, or several.
        """
        found = [each for each in self.all(path) if _fits(each.manifest, kind, name, namespace)]
        if len(found) == 1:
            return found[0]
        names = ", ".join(_name(each.manifest) for each in found or self.all(path))
        what = "several objects fit" if found else "no object fits"
        raise ObjectError(f"{path}: {what}; choose with kind=, name= or namespace= one of {names}")

    def all(self, path: str) -> list[LoadedObject]:
        """Return every object in a file.

        Raises:
            ObjectError: it is missing, cannot be read or holds none.
        """
        file = self._file(path)
        found: list[LoadedObject] = []
        for part in parts(Input(str(file), explicit=True), "default"):
            if isinstance(part, Problem) and not part.warning:
                raise ObjectError(f"{path}:{part.line}:{part.column}: {part.message}: {part.remedy}")
            if isinstance(part, Manifest):
                shown = replace(part.document, source=path)
                found.append(LoadedObject(Manifest(shown, part.prefix, part.request)))
        if not found:
            raise ObjectError(f"{path}: holds no object: write one, with apiVersion and kind")
        return found

    def _file(self, path: str) -> Path:
        for directory in self._directories:
            if (directory / path).is_file():
                return directory / path
        places = " and not in ".join(map(str, dict.fromkeys(self._directories)))
        raise ObjectError(f"{path}: is not in {places}")


def as_manifest(given: Mapping[str, Any], namespace: str) -> Manifest:
    """Return an object with the places of its fields: those of its file, else of itself written as YAML.

    Raises:
        ObjectError: it is none.
    """
    value = dict(given)
    if isinstance(given, LoadedObject):
        return _only(replace(given.manifest.document, value=value), namespace, given.manifest.prefix)
    for document in read_text("object", yaml_text.block(value)):
        if isinstance(document, Document):
            return _only(replace(document, value=value), namespace)
    raise ObjectError("an empty object: give apiVersion, kind and metadata.name")


def _only(document: Document, namespace: str, prefix: tuple[str | int, ...] = ()) -> Manifest:
    for part in objects(document, namespace=namespace):
        if isinstance(part, Problem):
            raise ObjectError(f"{part.message}: {part.remedy}")
        if isinstance(part, Manifest):
            return Manifest(document, prefix + part.prefix, part.request)
    raise ObjectError("no object for the API server: give apiVersion, kind and metadata.name")


def _fits(manifest: Manifest, kind: str, name: str, namespace: str) -> bool:
    request = manifest.request
    pairs = ((kind, request.kind.kind), (name, request.name), (namespace, request.namespace))
    return all(wanted in {"", has} for wanted, has in pairs)


def _name(manifest: Manifest) -> str:
    return f"{manifest.request.kind.kind} {manifest.request.shown_name}"


@dataclass(frozen=True, slots=True, repr=False)
class Review(Answer):
    """What admission would say of one object, and what would be stored of it."""

    verdict: Verdict

    @property
    def patched(self) -> dict[str, Any] | None:
        """The object as it would be stored, with the defaults of the API server; None for a DELETE."""
        return self.verdict.object

    @property
    def patch(self) -> list[dict[str, Any]]:
        """The operations (RFC 6902) that the webhook would answer with."""
        return [dict(operation) for operation in self.verdict.operations]


class Shown(Protocol):
    """Something with a title and a report for people."""

    @property
    def title(self) -> str:
        """What was judged."""
        ...

    @property
    def report(self) -> str:
        """What was found, with frames of the file."""
        ...


class Reviewer:
    """Judges objects with one configuration."""

    def __init__(self, setup: Setup, shown: list[Shown]) -> None:
        self._setup = setup
        self._shown = shown

    def configured(self, policies: Mapping[str, Any] | None = None, **sections: Any) -> Reviewer:
        """Return one with another configuration: the sections of a policy file, such as `mode` and `exemptions`.

        Raises:
            ConfigError: it is refused.
        """
        document = {"apiVersion": API_VERSION, "kind": KIND, **sections}
        if policies is not None:
            document["policies"] = dict(policies)
        return Reviewer(Setup(parse_config(document), self._setup.today), self._shown)

    def review(  # noqa: PLR0913 -- what an admission request holds, all by name
        self,
        obj: Object,
        *,
        old: Object | None = None,
        operation: str = "",
        subresource: str = "",
        user: str = "",
        groups: Sequence[str] = (),
        namespace: str = "default",
        namespace_labels: Mapping[str, str] | None = None,
        dry_run: bool = False,
        context: Sequence[Object] = (),
        complete_context: bool = False,
        today: dt.date | None = None,
    ) -> Review:
        """Judge one object as the webhook would, mutations and then validation.

        Args:
            obj: the object, from `manifest(...)`, a builder or written out.
            old: the object before an UPDATE.
            operation: CREATE, UPDATE or DELETE; an UPDATE where `old` is given, else a CREATE.
            subresource: such as `scale`.
            user: who asks.
            groups: the groups of who asks.
            namespace: of an object that names none.
            namespace_labels: the labels of the namespace that the object is in.
            dry_run: whether nothing is to be stored.
            context: other objects that exist.
            complete_context: whether no others exist.
            today: the day, for exemptions; the real one by default.

        Raises:
            ObjectError: what is given is no object.
        """
        manifest = as_manifest(obj, namespace)
        others = [manifest.request, *(as_manifest(each, namespace).request for each in context)]
        if namespace_labels is not None:
            name = manifest.request.namespace
            labelled = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": namespace_labels}}
            others.append(as_manifest(labelled, name).request)
        asked = replace(
            manifest.request,
            operation=Operation(operation) if operation else Operation.UPDATE if old is not None else Operation.CREATE,
            old_object=as_manifest(old, namespace).request.object if old is not None else None,
            subresource=subresource,
            user=user,
            groups=tuple(groups),
            dry_run=dry_run,
        )
        if asked.operation is Operation.DELETE:
            asked = replace(asked, object=None, old_object=manifest.request.object)
        return self._judged(manifest, asked, others, complete=complete_context, today=today)

    def check(self, *objects: Object, namespace: str = "default", complete_context: bool = False) -> list[Review]:
        """Judge objects that are created together, each with the others as what else exists.

        Policies judge them, as in `gpugate check`; schemas do not.

        Raises:
            ObjectError: one of them is no object.
        """
        manifests = [as_manifest(each, namespace) for each in objects]
        requests = [each.request for each in manifests]
        return [self._judged(each, each.request, requests, complete=complete_context) for each in manifests]

    def _judged(
        self,
        manifest: Manifest,
        request: Request,
        others: Sequence[Request],
        *,
        complete: bool,
        today: dt.date | None = None,
    ) -> Review:
        ruleset, needs = self._setup.bound(self._setup.config)
        facts = facts_of(others, needs, complete=complete)
        verdict = Prepared(manifest, with_defaults(request), facts, ruleset, today or self._setup.today).judge()
        locator = Locator({rule.policy.id: rule.policy for rule in ruleset.rules})
        title = f"{request.operation} of {request.kind.kind} {request.shown_name}"
        found = Review(title, tuple(locator.findings(manifest, verdict)), verdict)
        self._shown.append(found)
        return found


if TYPE_CHECKING:
    Object = Mapping[str, Any]
