"""Prepare tests: the configuration, shared objects, and the request and cluster data of each case."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.policies.engine.clusters import EVERYWHERE, ClusterConfig, settle
from gpugate.policies.engine.config import API_VERSION, KIND, ConfigError, PolicyConfig, parse, parse_config
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import Needs, bind
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import NAMESPACE, GroupVersionKind, Operation, Request
from gpugate.webhook.manifests.case_format import FromFile, Given, Merged
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.load import RunFacts, parts
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.manifests.policy_file import PolicyFileError, load_policy_file
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.own_policies.catalog import catalog_from
from gpugate.webhook.testing.cases import unreadable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.field import Path as FieldPath
    from gpugate.webhook.manifests.case_format import Asked, Definition
    from gpugate.webhook.own_policies.catalog import Catalog
    from gpugate.webhook.testing.cases import Case


class ObjectFiles:
    """The objects in files; a file that several tests name is read once."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], tuple[list[Manifest], Problem | None]] = {}

    def objects(self, case: Case, at: FieldPath, path: str, namespace: str) -> Sequence[Manifest]:
        """Return the objects in a file.

        Args:
            case: the test that names it.
            at: where in the test it does.
            path: the file, from the folder of the case file.
            namespace: the namespace of objects that name none.

        Raises:
            CaseFileError: the test may not name the file; that, or a document in it, cannot be read; or it holds no
                object.
        """
        name = case.beside(at, path)
        manifests, problem = self._objects(name, namespace)
        if problem is not None:
            if problem.line:
                raise unreadable(problem)
            raise case.error(at, f"{problem.source}: {problem.message}: {problem.remedy}")
        if not manifests:
            raise case.error(at, f"{name} holds no object: write one, with apiVersion and kind")
        return manifests

    def _objects(self, name: str, namespace: str) -> tuple[list[Manifest], Problem | None]:
        if (name, namespace) not in self._read:
            manifests: list[Manifest] = []
            problem: Problem | None = None
            for part in parts(Input(name, explicit=True), namespace):
                if isinstance(part, Manifest):
                    manifests.append(part)
                elif isinstance(part, Problem) and not part.warning:
                    problem = problem or part
            self._read[name, namespace] = (manifests, problem)
        return self._read[name, namespace]


_MOST_BASES: Final = 8  # a base may itself have a base


class WrittenObjects:
    """Reads the objects that one test contains or names; objects without a namespace are in `namespace`."""

    def __init__(self, case: Case, files: ObjectFiles, namespace: str) -> None:
        self._case = case
        self._files = files
        self._namespace = namespace

    def read_one(self, at: FieldPath, written: Given) -> Manifest:
        """Return the one object at a field of the test.

        Raises:
            CaseFileError: it is missing, is not an object, or is several objects.
        """
        return self._only(at, self.read_all(at, written))

    def _only(self, at: FieldPath, manifests: Sequence[Manifest]) -> Manifest:
        if len(manifests) > 1:
            names = ", ".join(
                f"{manifest.request.kind.kind} {manifest.request.shown_name}" for manifest in manifests[:3]
            )
            more = " ..." if len(manifests) > 3 else ""
            message = (
                f"{len(manifests)} objects fit ({names}{more}): choose one with `{{file: ..., kind: ..., name: ...}}`"
            )
            raise self._case.error(at, message)
        return manifests[0]

    def read_all(self, at: FieldPath, written: Given, depth: int = 0) -> Sequence[Manifest]:
        """Return the objects at a field of the test; one at least.

        Raises:
            CaseFileError: it is missing or cannot be read.
        """
        if depth > _MOST_BASES:
            raise self._case.error(at, f"more than {_MOST_BASES} bases in each other: write the object out")
        if isinstance(written, str):
            return self._files.objects(self._case, at, written, self._namespace)
        if "apiVersion" in written or not written.keys() & {"file", "base", "patch"}:
            return self._inline(at, written)
        try:
            if "file" in written:
                return self._chosen(at, parse(written, FromFile, at))
            return [self._merged(at, parse(written, Merged, at), depth)]
        except ConfigError as error:
            raise self._case.error(error.path, error.message) from None

    def _inline(self, at: FieldPath, written: dict[str, Json]) -> list[Manifest]:
        source = self._case.source.document
        manifests: list[Manifest] = []
        for part in objects(replace(source, value=written), namespace=self._namespace):
            if isinstance(part, Problem):
                raise self._case.error(at, f"{part.message}: {part.remedy}")
            if isinstance(part, Manifest):
                manifests.append(Manifest(source, ("tests", self._case.index, *at, *part.prefix), part.request))
        if not manifests:
            raise self._case.error(at, "not an object for the API server: write one with apiVersion and kind")
        return manifests

    def _chosen(self, at: FieldPath, wanted: FromFile) -> list[Manifest]:
        manifests = self._files.objects(self._case, (*at, "file"), wanted.file, self._namespace)
        chosen = [
            manifest
            for manifest in manifests
            if wanted.kind in {"", manifest.request.kind.kind}
            and wanted.name in {"", manifest.request.name, manifest.request.generate_name}
            and wanted.namespace in {"", manifest.request.namespace}
        ]
        if not chosen:
            names = ", ".join(
                f"{manifest.request.kind.kind} {manifest.request.shown_name}" for manifest in manifests[:5]
            )
            raise self._case.error(at, f"no object of {wanted.file} fits; it holds {names}")
        return chosen

    def _merged(self, at: FieldPath, written: Merged, depth: int) -> Manifest:
        base = self._only((*at, "base"), self.read_all((*at, "base"), written.base, depth + 1))
        value = merged(base.request.object, written.patch)
        (changed,) = self._inline((*at, "patch"), value if isinstance(value, dict) else {})
        return Manifest(base.document, base.prefix, changed.request)


def merged(value: Json, patch: Json) -> Json:
    """Return a value with a JSON merge patch applied (RFC 7386, section 2); the value itself is left as it is."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for key, member in patch.items():
        if member is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), member)
    return result


class Setup:
    """The surroundings of tests.

    Attributes:
        config: the configuration of a test that names none; shipped modes by default.
        today: the day, for exemptions, where a test names none; the real one (UTC) by default.
        files: the files that tests name.
        catalog: the policies that tests may name; those of the library and of installed packages by default.
    """

    def __init__(
        self, config: PolicyConfig | None = None, today: dt.date | None = None, catalog: Catalog | None = None
    ) -> None:
        self.config = config or PolicyConfig()
        self.catalog = catalog or catalog_from(())
        self._known = self.catalog.known
        self.today = today or dt.datetime.now(dt.UTC).date()
        self.files = ObjectFiles()
        self._policy_files: dict[str, PolicyConfig] = {}
        self._bound: dict[bytes, tuple[Ruleset, Needs]] = {}

    @property
    def known(self) -> Collection[str]:
        """The ids of all policies."""
        return self._known

    def bound(self, config: PolicyConfig) -> tuple[Ruleset, Needs]:
        """Return the rules of a configuration, and what they look up.

        Raises:
            ConfigError: the configuration is refused.
        """
        key = msgspec.json.encode(config)
        if key not in self._bound:
            ruleset = bind(self.catalog.policies, config, closed_families=self.catalog.closed_families)
            self._bound[key] = (ruleset, Needs(ruleset.rules))
        return self._bound[key]

    def of(self, case: Case, definition: Definition) -> tuple[Ruleset, Needs]:
        """Return the rules that evaluate a test, and their needs.

        Raises:
            CaseFileError: the configuration that the test names is refused or cannot be read.
        """
        config = self._config(case, definition)
        if definition.cluster is not None:
            config = settle(config.file if isinstance(config, ClusterConfig) else config, definition.cluster)
        target = definition.target
        if target is not None:
            target_versions = {
                name: value for name, value in msgspec.structs.asdict(target).items() if value is not None
            }
            versions = msgspec.structs.replace(config.target, **target_versions)
            config = msgspec.structs.replace(config, target=versions)
        try:
            return self.bound(config)
        except ConfigError as error:
            raise case.error(("config", *error.path), str(error)) from None

    def _config(self, case: Case, definition: Definition) -> PolicyConfig:
        if definition.config is not None and definition.policy_file is not None:
            raise case.error(("config",), "the test has both `config` and `policy_file`: leave one of them")
        if definition.config is not None:
            try:
                return settle(parse_config({"apiVersion": API_VERSION, "kind": KIND, **definition.config}), EVERYWHERE)
            except ConfigError as error:
                raise case.error(("config", *error.path), str(error)) from None
        if definition.policy_file is None:
            return self.config
        name = case.beside(("policy_file",), definition.policy_file)
        try:
            if name not in self._policy_files:
                self._policy_files[name] = load_policy_file(Path(name), self._checked, cluster=EVERYWHERE)
            return self._policy_files[name]
        except PolicyFileError as error:
            raise case.error(("policy_file",), str(error)) from None

    def _checked(self, config: PolicyConfig) -> PolicyConfig:
        """Refuse a configuration that cannot be bound, while its location in the file is known."""
        self.bound(config)
        return config


@dataclass(frozen=True, slots=True)
class Prepared:
    """One object to evaluate, with everything that its verdict depends on."""

    manifest: Manifest
    request: Request
    facts: RunFacts
    ruleset: Ruleset
    today: dt.date

    def evaluate(self) -> Verdict:
        """Evaluate it as the webhook does: the mutations, then the validation of the mutated object.

        Schemas are not checked, unlike in `gpugate check`.
        """
        return evaluate(
            self.ruleset,
            self.request,
            self.facts,
            today=self.today,
            phase=Phase.BOTH,
            template_ceiling=Stance.ENFORCE,
        )


def facts_of(requests: Iterable[Request], needs: Needs, *, complete: bool) -> RunFacts:
    """Return objects as facts, reduced to the fields that rules read, as in the caches of the webhook."""
    projected = (needs.project(with_defaults(request)) for request in requests)
    return RunFacts((fact for fact in projected if fact is not None), complete=complete)


def prepared(case: Case, definition: Definition, setup: Setup) -> Prepared:
    """Make a test of a case file ready.

    Raises:
        CaseFileError: something that the test names is missing, cannot be read, or contradicts something else.
    """
    settings = definition.request
    ruleset, needs = setup.of(case, definition)
    reader = WrittenObjects(case, setup.files, settings.namespace or "default")
    manifest = reader.read_one(("object",), definition.object)
    request = manifest.request
    if settings.namespace and request.namespace != settings.namespace:
        stands = f"in namespace {request.namespace}" if request.namespace else "in no namespace"
        raise case.error(("request", "namespace"), f"the object is {stands}: leave one of them")
    others = [
        manifest.request
        for index, entry in enumerate(definition.context)
        for manifest in reader.read_all(("context", index), entry)
    ]
    if settings.namespace_labels is not None:
        if not request.namespace:
            raise case.error(("request", "namespace_labels"), f"a {request.kind.kind} is in no namespace")
        own = _namespace(request.namespace, settings.namespace_labels)
        others = [other for other in others if (other.kind, other.name) != (own.kind, own.name)] + [own]
    return Prepared(
        manifest=manifest,
        request=with_defaults(_request(case, settings, request, reader)),
        facts=facts_of((*others, request), needs, complete=bool(definition.complete_context)),
        ruleset=ruleset,
        today=definition.today or setup.today,
    )


def _request(case: Case, settings: Asked, request: Request, reader: WrittenObjects) -> Request:
    operation = Operation(settings.operation) if settings.operation else None
    if operation is None:
        operation = Operation.CREATE if settings.old is None else Operation.UPDATE
    if (operation is Operation.UPDATE) is not (settings.old is not None):
        raise case.error(("request",), "an UPDATE needs `old`, the object before it, and only an UPDATE has it")
    sent = replace(
        request,
        operation=operation,
        subresource=settings.subresource,
        user=settings.user,
        groups=settings.groups,
        dry_run=settings.dry_run,
    )
    if operation is Operation.DELETE:
        return replace(sent, object=None, old_object=request.object)
    if settings.old is not None:
        old = reader.read_one(("request", "old"), settings.old).request
        if (old.kind, old.namespace, old.name) != (request.kind, request.namespace, request.name):
            message = (
                f"{old.kind.kind} {old.shown_name} is another object than {request.kind.kind} {request.shown_name}"
            )
            raise case.error(("request", "old"), f"{message}: an UPDATE changes neither kind nor name")
        return replace(sent, old_object=old.object)
    return sent


def _namespace(name: str, labels: dict[str, str]) -> Request:
    metadata: dict[str, Json] = {"name": name, "labels": {**labels}}
    obj: dict[str, Json] = {"apiVersion": "v1", "kind": NAMESPACE.name, "metadata": metadata}
    return Request(GroupVersionKind("", "v1", NAMESPACE.name), Operation.CREATE, obj, name=name, namespace=name)
