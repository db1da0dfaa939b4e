"""Manifests with placeholders: their values are not known, which one finding says for each file.

A file of a repository may be a template that a tool renders, or a manual that a person completes. Nothing in the file says
which. In an object that reaches the API server, nothing renders it any more, and the policy on placeholders denies it there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.field import Unknown, render
from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.manifests.documents import SourceText
from gpugate.webhook.manifests.inputs import Selection
from gpugate.webhook.manifests.placeholders import TOOLS, Declared, Form, found_in, sealed
from gpugate.webhook.report.located import Located, ObjectName, Place, Severity, Sort

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.field import Path as FieldPath
    from gpugate.policies.sdk.objects import GroupVersionKind
    from gpugate.webhook.manifests.objects import Manifest
    from gpugate.webhook.schemas.wording import SchemaProblem

POLICY: Final = "nodeclasses/unexpanded-placeholder"

# Texts that have such signs for programs: shells, loggers and servers expand them, or they are prose. Values of
# environments and Secrets are never looked at, so that no report can quote one.
_FREE: Final = frozenset(
    [
        "annotations",
        "args",
        "binaryData",
        "command",
        "data",
        "description",
        "env",
        "envFrom",
        "restAPITemplate",
        "script",
        "stringData",
        "userData",
    ]
)
_FLUX: Final = frozenset({"metadata"})  # Flux, the language of InfluxDB's queries, interpolates `${name}`
# Groups whose kinds have such signs themselves: schemas, and templates that a controller fills in.
_OWN_SYNTAX: Final = frozenset({"apiextensions.k8s.io", "kro.run", "template.openshift.io"})


class Placeholder(Struct, frozen=True):
    """A placeholder in an object: its text, its form, and the path of the value or key that has it."""

    text: str
    form: Form
    path: FieldPath


@dataclass(frozen=True)
class Marked:
    """A manifest whose unknown values are marked, and the placeholders in it."""

    manifest: Manifest
    placeholders: tuple[Placeholder, ...] = ()

    def concern(self, problem: SchemaProblem) -> bool:
        """Tell whether what a schema refuses is an unknown value, or a thing as a whole that has one in it."""
        at = problem.path
        return any(path[: len(at)] == at or at[: len(path)] == path for path in self._paths)

    def repeats(self, finding: Located) -> bool:
        """Tell whether a finding of the policy is about a placeholder, which the finding of the file names."""
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
    found: list[Placeholder] = []
    # In groups that we do not know, braces may be the syntax of the kind itself, as in a workflow of Argo.
    made = _Marking(found, braces=_is_plain(request.kind)).of(request.object, ())
    if made is request.object or not isinstance(made, dict):
        return Marked(manifest, tuple(found))
    name, namespace = sealed(request.name), sealed(request.namespace)
    open_request = replace(request, object=made, name=name, namespace=namespace, is_template=True)
    return Marked(replace(manifest, request=open_request), tuple(found))


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
    return "." not in group or any(group == each or group.endswith(f".{each}") for each in _PLAIN)


class _Marking:
    """Replaces values; `found` gets the placeholders, without those in braces where these are the kind's own syntax."""

    def __init__(self, found: list[Placeholder], *, braces: bool) -> None:
        self._found = found
        self._braces = braces

    def of(self, value: Json, path: FieldPath) -> Json:
        if isinstance(value, str):
            return self._text(value, path)
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
        self._found += self._kept(key, at)
        if not free:
            return self.of(member, at)
        if isinstance(member, str) and _is_one(member):
            return self._text(member, at)
        return _opened(member, key)

    def _text(self, text: str, path: FieldPath) -> Json:
        found = found_in(text)
        if not found:
            return text
        self._found += self._kept(text, path)
        return Unknown(found[0][0])  # type: ignore[return-value] # in the place of a JSON value

    def _kept(self, text: str, path: FieldPath) -> Iterator[Placeholder]:
        for each, form in found_in(text):
            if form is not Form.BRACES or self._braces:
                yield Placeholder(each, form, path)


def _is_one(text: str) -> bool:
    """Tell whether a text is a placeholder as a whole."""
    return [each for each, _ in found_in(text)] == [text.strip()]


def _opened(value: Json, key: str) -> Json:
    """Return free text in which what is a placeholder as a whole is not known; its text may be a password and is not kept."""
    if isinstance(value, str):
        return Unknown(f"under {key}") if _is_one(value) else value  # type: ignore[return-value] # as above
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
    """The placeholders of one file; `declared` are the templates of the project, `known` the forms that this file has anyway."""

    def __init__(self, declared: Sequence[Declared], known: frozenset[Form] = frozenset()) -> None:
        self._declared = declared
        self._known = known
        self._is_evaluated = False
        self._lines: dict[tuple[Form, str], list[int]] = {}
        self._first: Place | None = None
        self._object: ObjectName | None = None

    def add(self, manifest: Manifest, found: Sequence[Placeholder], *, is_evaluated: bool) -> None:
        """Add those of a manifest; `is_evaluated` says that policies read it."""
        self._is_evaluated |= is_evaluated
        file = manifest.document.source
        fitting = (each for each in self._declared if Selection((each.pattern,)).excludes(file))
        known = self._known.union(*(TOOLS[each.tool] for each in fitting))
        source: SourceText | None = None
        for placeholder in found:
            if placeholder.form in known:
                continue
            source = source or SourceText(manifest.document)
            span, around = source.find((*manifest.prefix, *placeholder.path))
            lines = self._lines.setdefault((placeholder.form, placeholder.text), [])
            if span.line not in lines[-1:]:
                lines.append(span.line)
            if self._first is None:
                request = manifest.request
                self._first = Place(file, span.line, span.column, span.end, around.lines, around.first_line)
                self._object = ObjectName(
                    request.kind.api_version, request.kind.kind, request.namespace, request.shown_name
                )

    def finding(self) -> Located | None:
        """Return the finding that names all of them.

        None where there is none, or where a tool fills in all of them and no policy would read the objects.
        """
        manual = any(form is Form.MANUAL for form, _ in self._lines)
        if self._first is None or not (manual or self._is_evaluated):
            return None
        listed = sorted(self._lines.items(), key=lambda each: (each[0][0] is not Form.MANUAL, each[1][0]))
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
    """Return what a finding of `Placeholders` says of its file before it names the placeholders; empty for another finding."""
    return finding.message.partition(":")[0] if finding.stable_path == _STABLE else ""


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def _lines(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, lines[:_MOST_LINES]))
    more = f" and {len(lines) - _MOST_LINES} more" if len(lines) > _MOST_LINES else ""
    return f"line{'s' if len(lines) > 1 else ''} {shown}{more}"
