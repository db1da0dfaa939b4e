"""Manifests with placeholders, whose values are unknown; one finding for each file reports them.

A file of a repository may be a template that a tool renders, or a manual that a person completes. Nothing in the file says
which. In an object that reaches the API server, nothing renders it any more, and the policy on placeholders denies it there.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.field import Unknown, render
from gpugate.policies.sdk.structs import Struct, replace
from gpugate.webhook.manifests.documents import SourceText
from gpugate.webhook.manifests.inputs import Selection
from gpugate.webhook.manifests.placeholders import TOOLS, Declared, Form, found_in, sealed
from gpugate.webhook.report.located import Located, Location, ObjectName, Severity, Sort

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.field import Path as FieldPath
    from gpugate.policies.sdk.objects import GroupVersionKind
    from gpugate.webhook.manifests.objects import Manifest
    from gpugate.webhook.schemas.wording import SchemaProblem

POLICY: Final = "nodeclasses/unexpanded-placeholder"

# Text in which such signs have another meaning: shells, loggers and servers expand them, or it is prose. A shell also runs a
# RayJob's `entrypoint` and `ray start` with its parameters (KubeRay v1.6 `controllers/ray/common/pod.go`). Values of
# environment variables and Secrets are never read, so that no report can quote one.
_FREE: Final = frozenset(
    [
        "annotations",
        "args",
        "binaryData",
        "command",
        "data",
        "description",
        "entrypoint",
        "env",
        "envFrom",
        "rayStartParams",
        "restAPITemplate",
        "script",
        "stringData",
        "userData",
    ]
)
_FLUX: Final = frozenset({"metadata"})  # Flux, the language of InfluxDB's queries, interpolates `${name}`
# Groups whose kinds use such signs in their own syntax: schemas, and templates that a controller fills in.
_OWN_SYNTAX: Final = frozenset({"apiextensions.k8s.io", "kro.run", "template.openshift.io"})


class Placeholder(Struct, frozen=True):
    """A placeholder in an object: its text, its form, and the path of the value or key that has it."""

    text: str
    form: Form
    path: FieldPath


class Marked(Struct, frozen=True, dict=True):
    """A manifest whose unknown values are marked, and the placeholders in it."""

    manifest: Manifest
    placeholders: tuple[Placeholder, ...] = ()

    def concern(self, problem: SchemaProblem) -> bool:
        """Tell whether a schema problem is at an unknown value or at an object that contains one."""
        at = problem.path
        return any(path[: len(at)] == at or at[: len(path)] == path for path in self._paths)

    def repeats(self, finding: Located) -> bool:
        """Tell whether a finding of the policy is about a placeholder that the finding of the file names."""
        return finding.policy == POLICY and any(render(path) == finding.path for path in self._paths)

    @cached_property
    def _paths(self) -> frozenset[FieldPath]:
        return frozenset(placeholder.path for placeholder in self.placeholders)


def marked(manifest: Manifest) -> Marked:
    """Return a manifest in which each value with a placeholder is `Unknown`; the other parts are shared with the manifest.

    Its name and namespace are sealed where they have placeholders, so that no exemption, reference or pattern matches them.
    """
    request = manifest.request
    if request.object is None or request.kind.group in _OWN_SYNTAX:
        return Marked(manifest)
    placeholders: list[Placeholder] = []
    # In groups that we do not know, braces may be the syntax of the kind itself, as in a workflow of Argo.
    marked_object = _Marking(placeholders, braces=_is_plain(request.kind)).of(request.object, ())
    if marked_object is request.object or not isinstance(marked_object, dict):
        return Marked(manifest, tuple(placeholders))
    name, namespace = sealed(request.name), sealed(request.namespace)
    open_request = replace(request, object=marked_object, name=name, namespace=namespace, is_template=True)
    return Marked(replace(manifest, request=open_request), tuple(placeholders))


_PLAIN: Final = (
    "k8s.io",
    "karpenter.k8s.aws",
    "karpenter.sh",
    "keda.sh",
    "eks.amazonaws.com",
    "nvidia.com",
    "ray.io",
    "kubeflow.org",
    "x-k8s.io",
)


def _is_plain(kind: GroupVersionKind) -> bool:
    group = kind.group
    return "." not in group or any(group == suffix or group.endswith(f".{suffix}") for suffix in _PLAIN)


class _Marking:
    """Replaces values and appends to `placeholders`; braces are skipped where they are the syntax of the kind."""

    def __init__(self, placeholders: list[Placeholder], *, braces: bool) -> None:
        self._placeholders = placeholders
        self._braces = braces

    def of(self, value: Json, path: FieldPath) -> Json:
        if isinstance(value, str):
            return self._string(value, path)
        if isinstance(value, dict):
            free = _FREE | _FLUX if value.get("type") == "influxdb" else _FREE
            members = {key: self._member(key, member, path, free=key in free) for key, member in value.items()}
            return members if any(members[key] is not value[key] for key in value) else value
        if isinstance(value, list):
            items = [self.of(member, (*path, index)) for index, member in enumerate(value)]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        return value

    def _member(self, key: str, member: Json, path: FieldPath, *, free: bool) -> Json:
        at = (*path, key)
        self._placeholders += self._placeholders_of(key, at)
        if not free:
            return self.of(member, at)
        if isinstance(member, str) and _is_placeholder(member):
            return self._string(member, at)
        return _opened(member, key)

    def _string(self, text: str, path: FieldPath) -> Json:
        matches = found_in(text)
        if not matches:
            return text
        self._placeholders += self._placeholders_of(text, path)
        return Unknown(matches[0][0])  # type: ignore[return-value] # in the place of a JSON value

    def _placeholders_of(self, text: str, path: FieldPath) -> Iterator[Placeholder]:
        for placeholder, form in found_in(text):
            if form is not Form.BRACES or self._braces:
                yield Placeholder(placeholder, form, path)


def _is_placeholder(text: str) -> bool:
    """Tell whether a text consists of one placeholder."""
    return [placeholder for placeholder, _ in found_in(text)] == [text.strip()]


def _opened(value: Json, key: str) -> Json:
    """Return free text in which strings that are a placeholder are unknown; their text may be a password and is dropped."""
    if isinstance(value, str):
        return Unknown(f"under {key}") if _is_placeholder(value) else value  # type: ignore[return-value] # as above
    if isinstance(value, dict):
        members = {name: _opened(member, key) for name, member in value.items()}
        return members if any(members[name] is not value[name] for name in value) else value
    if isinstance(value, list):
        items = [_opened(member, key) for member in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


_MOST_NAMES: Final = 10
_MOST_LINES: Final = 5
_STABLE: Final = "placeholders"
_WHY_TEMPLATE: Final = "Policies that need these values are not evaluated."
_WHY_MANUAL: Final = (
    "Applied as it is, the object has these texts as its values. Policies that need the values are not evaluated."
)


class Placeholders:
    """The placeholders of one file; `declared` are the project's templates, `known` the forms that need no report."""

    def __init__(self, declared: Sequence[Declared], known: frozenset[Form] = frozenset()) -> None:
        self._declared = declared
        self._known = known
        self._is_evaluated = False
        self._lines: dict[tuple[Form, str], list[int]] = {}
        self._first: Location | None = None
        self._object: ObjectName | None = None

    def add(self, manifest: Manifest, placeholders: Sequence[Placeholder], *, is_evaluated: bool) -> None:
        """Add the placeholders of a manifest; `is_evaluated` says that policies read it."""
        self._is_evaluated |= is_evaluated
        file = manifest.document.source
        fitting = (declared for declared in self._declared if Selection((declared.pattern,)).excludes(file))
        known = self._known.union(*(TOOLS[declared.tool] for declared in fitting))
        source: SourceText | None = None
        for placeholder in placeholders:
            if placeholder.form in known:
                continue
            source = source or SourceText(manifest.document)
            span, around = source.find((*manifest.prefix, *placeholder.path))
            lines = self._lines.setdefault((placeholder.form, placeholder.text), [])
            if span.line not in lines[-1:]:
                lines.append(span.line)
            if self._first is None:
                request = manifest.request
                self._first = Location(file, span.line, span.column, span.end, around.lines, around.first_line)
                self._object = ObjectName(
                    request.kind.api_version, request.kind.kind, request.namespace, request.shown_name
                )

    def finding(self) -> Located | None:
        """Return the finding that names the placeholders.

        None if there are none, or if a tool fills in all of them and no policy would read the objects.
        """
        manual = any(form is Form.MANUAL for form, _ in self._lines)
        if self._first is None or not (manual or self._is_evaluated):
            return None
        listed = sorted(self._lines.items(), key=lambda entry: (entry[0][0] is not Form.MANUAL, entry[1][0]))
        named = [f"{_cut(text)} ({_lines(lines)})" for (_, text), lines in listed[:_MOST_NAMES]]
        more = len(listed) - len(named)
        tools = sorted({form.value for form, _ in self._lines if form is not Form.MANUAL})
        kind = (
            "contains placeholders to replace by hand" if manual else f"contains placeholders of {' and '.join(tools)}"
        )
        message = f"{kind}: {', '.join(named)}{f' and {more} more' if more else ''}"
        declare = "list the file and its tool under `templates` in .gpugate.yaml"
        hint = f"Write the values, or {declare}." if manual else f"Render the file and check the result, or {declare}."
        return Located(
            Sort.VIOLATION,
            Severity.NOTE,
            message,
            self._first,
            policy=POLICY,
            object=self._object,
            why=_WHY_MANUAL if manual else _WHY_TEMPLATE,
            hint=hint,
            stable_path=_STABLE,
        )


def template_for(finding: Located) -> str:
    """Return the message of a finding of `Placeholders` up to the list of placeholders; empty for other findings."""
    return finding.message.partition(":")[0] if finding.stable_path == _STABLE else ""


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def _lines(lines: Sequence[int]) -> str:
    listed = ", ".join(map(str, lines[:_MOST_LINES]))
    more = f" and {len(lines) - _MOST_LINES} more" if len(lines) > _MOST_LINES else ""
    return f"line{'s' if len(lines) > 1 else ''} {listed}{more}"
