"""Load every object that a command line names, as requests or as context for policies."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, TypedDict

from gpugate.policies.sdk.facts import Known
from gpugate.policies.sdk.field import Field, TemplateField, has_unknown, is_unknown
from gpugate.policies.sdk.objects import NODE_POOL, POD, GroupVersionKind
from gpugate.policies.sdk.pod_templates import TEMPLATES
from gpugate.policies.sdk.structs import Struct, replace
from gpugate.policies.sdk.template_views import WORKFLOW_SPECS
from gpugate.policies.sdk.unknown_kinds import CHART_INSTALLERS, chart_values
from gpugate.webhook.manifests.documents import Document, Positions, has_head, read_bytes, read_text, texts_between
from gpugate.webhook.manifests.inputs import Input, Language, Passed, expand
from gpugate.webhook.manifests.objects import Manifest, NotAManifest, objects
from gpugate.webhook.manifests.placeholders import is_sealed
from gpugate.webhook.manifests.problems import Passing, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.sdk.facts import Fact
    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.objects import Kind, Request
    from gpugate.webhook.manifests.documents import Span
    from gpugate.webhook.manifests.inputs import ObjectsInValues


# Policies read all objects of these kinds for each object: one unknown value would end the evaluation of every other.
_ALL_READ: Final = frozenset({"NodePool"})


def _has_name(request: Request) -> bool:
    return not is_unknown(Field(request.object)["metadata", "name"].value)


class RunFacts:
    """What the files of a run hold.

    They prove that an object exists. That one does not exist they prove only when they are `complete`, which the user
    must say: most repositories hold a part of what a cluster holds. A request of `installer_fact` takes that back.
    """

    def __init__(self, requests: Iterable[Request], *, complete: bool = False) -> None:
        self._none = {is_complete: Known((), is_complete) for is_complete in (False, True)}
        self._objects: dict[tuple[str, str], list[Request]] = {}
        for request in requests:
            complete = complete and request.object is not None
            if request.object is not None:
                self._objects.setdefault((request.kind.group, request.kind.kind), []).append(request)
        self._complete = complete
        self._namespaces: dict[Kind, dict[str | None, Known]] = {}

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        """Return the objects of a kind, of one namespace where one is given; the same `Known` each time."""
        known = self._namespaces.get(kind)
        if known is None:
            known = self._namespaces[kind] = self._by_namespace(kind)
        # Any object may be in a namespace of which only its tool knows the name.
        return known.get(namespace) or self._none[known[None].complete and not is_sealed(namespace or "")]

    def _by_namespace(self, kind: Kind) -> dict[str | None, Known]:
        fields: dict[str | None, list[Field]] = {None: []}
        complete = self._complete
        for request in self._objects.get((kind.group, kind.name), ()):
            if kind.covers(request.kind):
                complete = complete and not is_sealed(request.namespace)
                open_values = request.is_template and has_unknown(request.object)
                if open_values and (kind.name in _ALL_READ or not _has_name(request)):
                    complete = False
                    continue
                item = (TemplateField if open_values else Field)(dict(request.object or {}))
                fields[None].append(item)
                fields.setdefault(request.namespace, []).append(item)
        return {namespace: Known(tuple(items), complete) for namespace, items in fields.items()}


def installer_fact(request: Request) -> Request | None:
    """Return what an object that installs Helm charts says about other objects; None for other objects.

    Any object may be in a chart that no file contains. The request has no object, which stands for those.
    """
    kind = (request.kind.group, request.kind.kind)
    if kind not in CHART_INSTALLERS or not any(True for _ in chart_values(kind[0], request.object)):
        return None
    return replace(request, object=None)


_PLAN: Final = "terraform_version"
_EACH: Final = "*"


class Loaded(Struct, frozen=True):
    """What was found: the manifests in order, what could not be read, what was passed over, and the files' names."""

    manifests: tuple[Manifest, ...]
    problems: tuple[Problem, ...]
    passed_over: tuple[NotAManifest | Passed, ...]
    files: tuple[str, ...]


def load(paths: Iterable[str], *, namespace: str = "default") -> Loaded:
    """Read files, directories, patterns and `-`.

    Args:
        paths: what the user named.
        namespace: the namespace of objects that name none.
    """
    return load_files(expand(paths), namespace=namespace)


def load_files(files: Iterable[Input | Problem | Passed], *, namespace: str = "default") -> Loaded:
    """Read files that paths were expanded to; the namespace is that of objects that name none."""
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    passed_over: list[NotAManifest | Passed] = []
    names: list[str] = []
    for file in files:
        if isinstance(file, Input):
            names.append(file.label)
        for part in parts(file, namespace) if isinstance(file, Input) else (file,):
            if isinstance(part, Document):
                continue
            if isinstance(part, Manifest):
                manifests.append(part)
            elif isinstance(part, Problem):
                problems.append(part)
            else:
                passed_over.append(part)
    return Loaded(tuple(manifests), tuple(problems), tuple(passed_over), tuple(names))


def _passed(problem: Problem) -> NotAManifest:
    return NotAManifest(problem.source, problem.line, problem.passing or Passing.NON_MANIFEST)


def parts(file: Input, namespace: str) -> Iterator[Document | Manifest | Problem | NotAManifest]:
    """Yield what a file holds: each document that can be read, followed by the objects in it.

    Of a file that the user did not name, a problem of something that is not a manifest is none.
    """
    data = file.read()
    if isinstance(data, Problem):
        yield data if file.explicit or data.passing is None else _passed(data)
        return
    reported: set[Passing] = set()
    for document in _documents(file, data):
        if isinstance(document, Problem) and document.passing and not file.explicit:
            # Once for each file: one that is not JSON has a problem for each of its lines.
            if not document.warning and document.passing not in reported:
                reported.add(document.passing)
                yield _passed(document)
            continue
        if isinstance(document, Document):
            yield from _objects(document, namespace, lenient=not file.explicit)
        else:
            yield document


def _objects(
    document: Document, namespace: str, *, lenient: bool, level: int = 0
) -> Iterator[Document | Manifest | Problem | NotAManifest]:
    """Yield a document, its objects, those in texts of these that a controller applies, and those in values of a chart."""
    yield document
    source = _Source(document)
    for manifest in objects(document, namespace=namespace, lenient=lenient):
        yield manifest
        if not isinstance(manifest, Manifest):
            continue
        if manifest.request.kind == _CONFIG_MAP:
            yield from _unapplied(manifest, source)
        elif level < _MOST_LEVELS:
            inside = _namespace_inside(manifest.request, namespace)
            for part in _inside(manifest, source):
                if isinstance(part, Document):
                    yield from _objects(part, inside, lenient=True, level=level + 1)
                else:
                    yield part


_CONFIG_MAP: Final = GroupVersionKind("", "v1", "ConfigMap")


def _inside(manifest: Manifest, source: _Source) -> Iterator[Document | NotAManifest]:
    """Yield the manifests in an object that a controller applies or adds to a chart."""
    kind = (manifest.request.kind.group, manifest.request.kind.kind)
    if kind in WORKFLOW_SPECS:
        for text in _applied(manifest):
            yield from _in_text(manifest, text, source)
    elif kind in CHART_INSTALLERS:
        for values in (values for chart in chart_values(kind[0], manifest.request.object) for values in chart):
            if values.mapping:
                yield from _extra_manifests(values.value, (*manifest.prefix, *values.path), source)


def _namespace_inside(request: Request, default: str) -> str:
    """Return the namespace of the manifests in an object that name none.

    Argo creates them in that of the workflow; Flux and K3s install a chart in `targetNamespace`, Argo CD in that of its
    destination.
    """
    spec = Field(request.object)["spec"]
    target = spec["targetNamespace"].text or spec["destination", "namespace"].text
    is_chart = (request.kind.group, request.kind.kind) in CHART_INSTALLERS
    return (target if is_chart else "") or request.namespace or default


class _Source:
    """A document that is composed once for all texts of its objects."""

    def __init__(self, document: Document) -> None:
        self.document = document

    @cached_property
    def positions(self) -> Positions:
        return Positions(self.document)

    @cached_property
    def lines(self) -> list[str]:
        return (self.document.file_text or self.document.text).splitlines()

    def text_of(self, line: int, count: int) -> str:
        """Return lines of the file, by the number of the first of them."""
        first = line - self.document.first_line
        return "\n".join(self.lines[first : first + count])


_MOST_LEVELS: Final = 2  # of workflows that create workflows
_MOST_TEXTS: Final = 200  # of one object, as of its Pod templates
_MOST_CHARACTERS: Final = 1_000_000  # of these together; an alias may repeat one any number of times
# What makes or changes an object from a whole manifest (Argo Workflows v3.7.3 `pkg/apis/workflow/v1alpha1/workflow_types.go`,
# ResourceTemplate).
_ACTIONS: Final = frozenset({"create", "apply", "replace"})


def _applied(manifest: Manifest) -> Iterator[Path]:
    """Yield the paths of the texts of an Argo workflow that are manifests, which its executor applies."""
    root = Field(manifest.request.object)
    texts = characters = 0
    for template in root[WORKFLOW_SPECS[manifest.request.kind.group, manifest.request.kind.kind]]["templates"]:
        text = template["resource", "manifest"]
        if template["resource", "action"].text in _ACTIONS and has_head(text.text):
            texts, characters = texts + 1, characters + len(text.text)
            if texts > _MOST_TEXTS or characters > _MOST_CHARACTERS:
                return
            yield text.path


class _Filled(TypedDict):
    derived: bool
    braces: bool


_FILLED: Final = _Filled(derived=True, braces=True)


def _in_text(manifest: Manifest, path: Path, source: _Source) -> Iterator[Document | NotAManifest]:
    """Yield the documents of a text in an object, with their places in its file."""
    yield from _text_parts(Field(manifest.request.object)[path].text, (*manifest.prefix, *path), source)


def _text_parts(text: str, at: Path, source: _Source) -> Iterator[Document | NotAManifest]:
    """Yield the documents of a text at a path of a document, with their places in its file."""
    file = source.document.source
    span, block = source.positions.find(at), source.positions.block(at)
    for part in read_text(file, text, templates=True):
        if isinstance(part, Problem):
            if not part.warning:
                yield NotAManifest(file, span.line, Passing.TEMPLATE)
        elif block is None:
            file_text = source.text_of(span.line, 1)
            yield replace(part, text="", first_line=span.line, places={(): span}, file_text=file_text, **_FILLED)
        else:
            before, indent = block[0] - 1, block[1]
            places = {
                path: replace(s, line=s.line + before, column=s.column + indent, end=s.end + indent)
                for path, s in Positions(part).all().items()
            }
            first = before + part.first_line
            file_text = source.text_of(first, part.text.count("\n") + 1)
            yield replace(part, first_line=first, places=places, file_text=file_text, **_FILLED)


def _unapplied(manifest: Manifest, source: _Source) -> Iterator[NotAManifest]:
    """Yield the texts of a ConfigMap that are manifests of kinds which policies know."""
    for text in Field(manifest.request.object)["data"].members():
        if _holds_known(text.text):
            line = source.positions.find((*manifest.prefix, *text.path)).line
            yield NotAManifest(source.document.source, line, Passing.EMBEDDED)


_TYPE: Final = re.compile(r"""^(?P<key>apiVersion|kind):[ \t]+["']?(?P<value>[\w./-]+)["']?[ \t]*$""", re.MULTILINE)


def _holds_known(text: str) -> bool:
    for part in texts_between(text) if has_head(text) or "\n---" in text else ():
        head = {member["key"]: member["value"] for member in _TYPE.finditer(part)}
        kind = GroupVersionKind.of(head.get("apiVersion", ""), head.get("kind", ""))
        if (kind.group, kind.kind) in TEMPLATES or POD.covers(kind) or NODE_POOL.covers(kind):
            return True
    return False


def _documents(file: Input, data: bytes) -> Iterator[Document | Problem | NotAManifest]:
    if file.language:
        from gpugate.webhook.manifests import terraform  # noqa: PLC0415 -- few repositories have it

        if file.language is Language.HCL:
            yield from terraform.documents(file.label, data)
        else:
            text = data.decode(errors="replace")
            parts: list[Document | Problem] = list(terraform.template_documents(file.label, text))
            yield from parts or (NotAManifest(file.label, 1),)
        return
    for document in read_bytes(file.label, data, templates=True):
        if isinstance(document, Document) and isinstance(document.value, dict) and _PLAN in document.value:
            from gpugate.webhook.manifests import terraform_plan  # noqa: PLC0415 -- as above

            if terraform_plan.is_plan(document.value):
                yield from terraform_plan.plan_documents(document)
                continue
        in_values = list(_in_values(document, file.objects)) if file.objects and isinstance(document, Document) else []
        yield from in_values or (document,)
        if (
            isinstance(document, Document)
            and not in_values
            and not file.of_chart
            and _is_values(file.label, document.value)
        ):
            yield from _extra_manifests(document.value, (), _Source(document)) if "apiVersion" in document.text else ()


# Lists of whole manifests in the values of charts: a chart renders each element with its other objects.
_EXTRA: Final = frozenset(
    {"extraDeploy", "extraManifests", "extraObjects", "extraResources", "rawManifests", "rawResources"}
)
_MOST_EXTRA: Final = 200
_MOST_MEMBERS: Final = 100_000  # of the values that are looked through


def _is_values(name: str, value: Json) -> bool:
    """Tell whether a document may be the values of a chart: by the name of its file, or by a list of further manifests."""
    if not isinstance(value, dict) or ("apiVersion" in value and "kind" in value):
        return False
    return "values" in PurePosixPath(name).name or not _EXTRA.isdisjoint(value)


def _extra_manifests(value: Json, at: Path, source: _Source) -> Iterator[Document | NotAManifest]:
    """Yield the manifests in lists of the values of a chart, which the chart adds to its objects, with their places.

    The values are at a path of a document. An element is an object, or a text with a manifest. Without a name it is a part
    of something else, such as a reference. A manifest outside of lists may be a default that the chart changes, and is
    passed over.
    """
    document = source.document
    manifests = {(*at, *path): element for path, element in islice(_held_manifests(value), _MOST_EXTRA)}
    places = _places_below(source.positions, [path for path, element in manifests.items() if isinstance(element, dict)])
    lines = document.text.splitlines()
    for path, element in manifests.items():
        if isinstance(path[-1], str):
            yield NotAManifest(document.source, source.positions.find(path).line, Passing.EMBEDDED)
        elif isinstance(element, str):
            yield from _text_parts(element, path, source)
        else:
            below = places[path] or {(): source.positions.find(path)}
            first, last = (pick(span.line for span in below.values()) for pick in (min, max))
            text = "\n".join(lines[first - document.first_line : last - document.first_line + 1])
            yield replace(document, text=text, first_line=first, value=element, places=below, **_FILLED)


def _places_below(positions: Positions, paths: Sequence[Path]) -> dict[Path, dict[Path, Span]]:
    """Return the places of the values below each of some paths, by the rest of their paths."""
    below: dict[Path, dict[Path, Span]] = {path: {} for path in paths}
    lengths = sorted({len(path) for path in paths})
    for at, span in positions.all().items() if paths else ():
        for length in lengths:
            if at[:length] in below:
                below[at[:length]][at[length:]] = span
    return below


def _held_manifests(value: Json) -> Iterator[tuple[Path, dict[str, Json] | str]]:
    """Yield the manifests below a value, as objects or texts, with their paths."""
    pending: list[tuple[Path, Json]] = [((), value)]
    members = characters = 0
    while pending:
        path, element = pending.pop()
        if isinstance(element, str):
            characters += len(element)
            if characters > _MOST_CHARACTERS:
                return
            if has_head(element):
                yield path, element
            continue
        if not isinstance(element, dict | list):
            continue
        members += len(element)
        if members > _MOST_MEMBERS:
            return
        if isinstance(element, list):
            pending += [((*path, index), member) for index, member in reversed(list(enumerate(element)))]
        elif path and _is_manifest(element):
            yield path, element
        else:
            pending += [((*path, key), member) for key, member in reversed(element.items())]


def _is_manifest(value: dict[str, Json]) -> bool:
    field = Field(value)
    metadata = field["metadata"]
    return bool(
        field["apiVersion"].text and field["kind"].text and (metadata["name"].text or metadata["generateName"].text)
    )


def _in_values(document: Document, maps: Iterable[ObjectsInValues]) -> Iterator[Document]:
    """Yield the objects that the values of a chart hold, each with the places of its values."""
    placed = Positions(document).all()
    lines = document.text.splitlines()
    for entry in maps:
        keys = entry.path.split(".")
        items = {
            path: item for path in _members(document.value, keys) if isinstance(item := _at(document.value, path), dict)
        }
        whole: dict[Path, dict[Path, Span]] = {path: {} for path in items}
        for at, span in placed.items():
            if at[: len(keys)] in whole:
                whole[at[: len(keys)]][at[len(keys) :]] = span
        for path, item in items.items():
            places = whole[path]
            own = {span.line for span in places.values()} or {document.first_line}
            yield replace(
                document,
                text="\n".join(lines[min(own) - document.first_line : max(own) - document.first_line + 1]),
                first_line=min(own),
                **_object(item, path, entry, places),
                derived=True,
                partial=True,
            )


def _object(item: dict[str, Json], path: Path, how: ObjectsInValues, places: Mapping[Path, Span]) -> _Placed:
    """Return the object that a value is, and the places of its fields."""
    keys = tuple(how.spec.split(".")) if how.spec else ()
    name = item.get("name")
    spec = _at(item, keys) if keys else {key: value for key, value in item.items() if key != "name"}
    value: dict[str, Json] = {
        "apiVersion": how.api_version,
        "kind": how.kind,
        "metadata": {"name": name if isinstance(name, str) and name else str(path[-1])},
        "spec": spec if spec is not None else {},
    }
    own: dict[Path, Span] = {("spec", *at[len(keys) :]): span for at, span in places.items() if at[: len(keys)] == keys}
    if () in places:
        own |= {(): places[()], ("metadata", "name"): places.get(("name",), places[()])}
    return {"value": value, "places": own}


class _Placed(TypedDict):
    value: Json
    places: Mapping[Path, Span]


def _members(value: Json, keys: Sequence[str]) -> list[Path]:
    """Return the paths that keys lead to, of which `*` stands for all."""
    paths: list[Path] = [()]
    for key in keys:
        further: list[Path] = []
        for path in paths:
            container = _at(value, path)
            if isinstance(container, dict):
                further += [
                    (*path, member) for member in (container if key == _EACH else [key] if key in container else [])
                ]
            elif isinstance(container, list) and key == _EACH:
                further += [(*path, index) for index in range(len(container))]
        paths = further
    return paths


def _at(value: Json, path: Iterable[str | int]) -> Json:
    for key in path:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        else:
            value = value[key] if isinstance(value, list) and isinstance(key, int) and key < len(value) else None
    return value
