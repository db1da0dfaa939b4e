"""Evaluate the objects of a pytest test by policies. CRD schemas are not checked here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

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
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    import pytest

    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.objects import Request

# The names of findings without a policy.
_TROUBLES = frozenset(sort.value for sort in Sort if sort not in {Sort.VIOLATION, Sort.PATCH})


class Location(NamedTuple):
    """The location of a finding: the file as it was named, and line and column from 1."""

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: its policy, location, message and mode (`enforce`, `warn`, `audit`)."""

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
    """The findings in one or several objects.

    A test uses `answer.allowed`, `answer.denied_by("pods/...")` and `answer["pods/..."].location`. If it fails, pytest
    shows all findings, with frames of the files.
    """

    title: str
    located: tuple[Located, ...]
    # The ids of all policies.
    known: Collection[str]

    @property
    def allowed(self) -> bool:
        """Whether nothing is denied."""
        return not any(located.severity is Severity.ERROR for located in self.located)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, without the patches of mutations."""
        return tuple(_finding(located) for located in self.located if not _is_patch(located))

    def denied_by(self, *policies: str) -> bool:
        """Whether each of some policies denies it; with none, whether any does."""
        return self._have([located for located in self.located if located.severity is Severity.ERROR], policies)

    def warned_by(self, *policies: str) -> bool:
        """Whether each of some policies warns; with none, whether any does."""
        return self._have([located for located in self.located if located.stance is Stance.WARN], policies)

    def recorded_by(self, *policies: str) -> bool:
        """Whether each of some policies only records it; with none, whether any does."""
        return self._have([located for located in self.located if located.stance is Stance.AUDIT], policies)

    def mutated_by(self, *policies: str) -> bool:
        """Whether each of some policies changes it; with none, whether any does."""
        return self._have([located for located in self.located if _is_patch(located)], policies)

    def __getitem__(self, policy: str) -> Finding:
        """Return the first finding of a policy; a KeyError lists the findings of others."""
        _refuse_unknown(policy, self.known)
        first = next((located for located in self.located if words.code(located) == policy), None)
        if first is None:
            raise KeyError(f"{policy} finds nothing in {self!r}")
        return _finding(first)

    @property
    def report(self) -> str:
        """All findings, with frames of the files."""
        return text.write(Report(self.located), view=View(quiet=True)).rstrip("\n") or "nothing was found"

    def __repr__(self) -> str:
        lines = "; ".join(dict.fromkeys(self._in_short()))
        return f"<{self.title}: {'allowed' if self.allowed else 'DENIED'}{f' ({lines})' if lines else ''}>"

    def _in_short(self) -> Iterator[str]:
        for located in self.located:
            verb = "changes" if _is_patch(located) else located.severity.value
            yield f"{words.code(located)} {verb}"

    def _have(self, located: list[Located], policies: tuple[str, ...]) -> bool:
        for policy in policies:
            _refuse_unknown(policy, self.known)
        codes = {words.code(finding) for finding in located}
        return codes.issuperset(policies) if policies else bool(codes)


def _is_patch(located: Located) -> bool:
    return located.sort is Sort.PATCH and bool(located.patches)


def _finding(located: Located) -> Finding:
    position = located.location
    return Finding(
        policy=words.code(located),
        location=Location(position.file, position.line, position.column),
        path=located.path,
        message=located.message,
        mode=located.stance.word if located.stance is not None else "",
        hint=located.hint,
        located=located,
    )


def _refuse_unknown(policy: str, known: Collection[str]) -> None:
    """Keep a typo from passing in `assert not answer.denied_by(...)`."""
    if policy not in known and policy not in _TROUBLES:
        near = near_misses(policy, (*known, *_TROUBLES))
        meant = f"did you mean {near[0]}?" if near else "`gpugate policies` lists them"
        raise ValueError(f"unknown policy {policy}; {meant}")


def checked(arguments: Sequence[str], config: pytest.Config) -> tuple[Report, Collection[str]]:
    """Evaluate the files that the arguments of `gpugate check` name; return the report and the ids of all policies.

    Raises:
        GpugateError: they, the project file or the policy file are refused.
    """
    file = policy_file(config)
    chosen = ["--policy-file", str(file)] if file else []
    args, project = project_flags.parse(check_flags.parser(), "check", ["--quiet", *chosen, *arguments])
    result, ruleset = check.check_project(args, project)
    return result.report, frozenset(policy.id for policy in ruleset.catalog)


class ObjectError(GpugateError):
    """A value of a test is not an object, or a file does not contain the requested one; the text says where and why."""


class LoadedObject(dict[str, Any]):
    """An object from a file, which can be changed like any dict; findings in it have locations in the file."""

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest.request.object or {})
        self.manifest = manifest


class ManifestFiles:
    """Reads objects from files; a path is searched in each of some directories."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories

    def __call__(self, path: str, *, kind: str = "", name: str = "", namespace: str = "") -> LoadedObject:
        """Return the one object in a file, or the one of a kind, name or namespace.

        Raises:
            ObjectError: the file holds none that fits, or several.
        """
        fitting = [loaded for loaded in self.all(path) if _fits(loaded.manifest, kind, name, namespace)]
        if len(fitting) == 1:
            return fitting[0]
        names = ", ".join(_name(loaded.manifest) for loaded in fitting or self.all(path))
        reason = "several objects fit" if fitting else "no object fits"
        raise ObjectError(f"{path}: {reason}; choose with kind=, name= or namespace= one of {names}")

    def all(self, path: str) -> list[LoadedObject]:
        """Return every object in a file.

        Raises:
            ObjectError: it is missing, cannot be read or holds none.
        """
        file = self._file(path)
        loaded: list[LoadedObject] = []
        for part in parts(Input(str(file), explicit=True), "default"):
            if isinstance(part, Problem) and not part.warning:
                raise ObjectError(f"{path}:{part.line}:{part.column}: {part.message}: {part.remedy}")
            if isinstance(part, Manifest):
                document = replace(part.document, source=path)
                loaded.append(LoadedObject(Manifest(document, part.prefix, part.request)))
        if not loaded:
            raise ObjectError(f"{path}: holds no object: write one, with apiVersion and kind")
        return loaded

    def _file(self, path: str) -> Path:
        for directory in self._directories:
            if (directory / path).is_file():
                return directory / path
        places = " and not in ".join(map(str, dict.fromkeys(self._directories)))
        raise ObjectError(f"{path}: is not in {places}")


def as_manifest(obj: Mapping[str, Any], namespace: str) -> Manifest:
    """Return an object with the locations of its fields: in its file, else in the object written as YAML.

    Raises:
        ObjectError: it is none.
    """
    value = dict(obj)
    if isinstance(obj, LoadedObject):
        return _only(replace(obj.manifest.document, value=value), namespace, obj.manifest.prefix)
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
    """The response of admission to one object, and the object as it would be stored."""

    verdict: Verdict

    @property
    def patched(self) -> dict[str, Any] | None:
        """The object as it would be stored, with the defaults of the API server; None for a DELETE."""
        return self.verdict.object

    @property
    def patch(self) -> list[dict[str, Any]]:
        """The operations (RFC 6902) that the webhook would answer with."""
        return [dict(operation) for operation in self.verdict.operations]


class Titled(Protocol):
    """An answer with a title and a report."""

    @property
    def title(self) -> str:
        """The evaluated objects."""
        ...

    @property
    def report(self) -> str:
        """The findings, with frames of the file."""
        ...


class Reviewer:
    """Evaluates objects with one configuration."""

    def __init__(self, setup: Setup, answers: list[Titled]) -> None:
        self._setup = setup
        self._answers = answers

    def configured(self, policies: Mapping[str, Any] | None = None, **sections: Any) -> Reviewer:
        """Return one with another configuration: the sections of a policy file, such as `mode` and `exemptions`.

        Raises:
            ConfigError: it is refused.
        """
        document = {"apiVersion": API_VERSION, "kind": KIND, **sections}
        if policies is not None:
            document["policies"] = dict(policies)
        return Reviewer(Setup(parse_config(document), self._setup.today, self._setup.catalog), self._answers)

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
        """Evaluate one object as the webhook does, mutations and then validation.

        Args:
            obj: the object, from `manifest(...)`, a builder or written out.
            old: the object before an UPDATE.
            operation: CREATE, UPDATE or DELETE; an UPDATE where `old` is given, else a CREATE.
            subresource: such as `scale`.
            user: the user of the request.
            groups: the groups of the user.
            namespace: of an object without one.
            namespace_labels: the labels of the object's namespace.
            dry_run: whether the request is a dry run.
            context: other objects that exist.
            complete_context: whether no others exist.
            today: the day, for exemptions; the real one by default.

        Raises:
            ObjectError: a value is not an object.
        """
        manifest = as_manifest(obj, namespace)
        others = [manifest.request, *(as_manifest(other, namespace).request for other in context)]
        if namespace_labels is not None:
            name = manifest.request.namespace
            labelled = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": namespace_labels}}
            others.append(as_manifest(labelled, name).request)
        request = replace(
            manifest.request,
            operation=Operation(operation) if operation else Operation.UPDATE if old is not None else Operation.CREATE,
            old_object=as_manifest(old, namespace).request.object if old is not None else None,
            subresource=subresource,
            user=user,
            groups=tuple(groups),
            dry_run=dry_run,
        )
        if request.operation is Operation.DELETE:
            request = replace(request, object=None, old_object=manifest.request.object)
        return self._evaluate(manifest, request, others, complete=complete_context, today=today)

    def check(self, *objects: Object, namespace: str = "default", complete_context: bool = False) -> list[Review]:
        """Evaluate objects that are created together, each with the others as cluster data.

        Policies evaluate them as in `gpugate check`; schemas are not checked.

        Raises:
            ObjectError: one of them is not an object.
        """
        manifests = [as_manifest(obj, namespace) for obj in objects]
        requests = [manifest.request for manifest in manifests]
        return [
            self._evaluate(manifest, manifest.request, requests, complete=complete_context) for manifest in manifests
        ]

    def _evaluate(
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
        verdict = Prepared(manifest, with_defaults(request), facts, ruleset, today or self._setup.today).evaluate()
        locator = Locator({rule.policy.id: rule.policy for rule in ruleset.rules})
        title = f"{request.operation} of {request.kind.kind} {request.shown_name}"
        review = Review(title, tuple(locator.findings(manifest, verdict)), self._setup.known, verdict)
        self._answers.append(review)
        return review


if TYPE_CHECKING:
    Object = Mapping[str, Any]
