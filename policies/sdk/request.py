"""One thing to judge, however it came in."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Final

from gpugate.policies.sdk.field import Field, Json
from gpugate.policies.sdk.kinds import GroupVersionKind
from gpugate.policies.sdk.pod_templates import pod_templates

POD: Final = GroupVersionKind("", "v1", "Pod")


class Operation(StrEnum):
    """What the API server is asked to do with the object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The workload that holds a Pod template: its type and its whole object.

    `kept` is what a policy computes of the whole workload, so that it does not do so again for each template.
    """

    kind: GroupVersionKind
    root: Field
    kept: dict[object, object] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Subject:
    """A part of a request that policies of one kind judge: the object itself, or a Pod template in it."""

    kind: GroupVersionKind
    field: Field
    wrapper: Wrapper | None = None


@dataclass(frozen=True)
class Request:
    """A create, update or delete of one object.

    With a `subresource` the request is to that part of the object, and only rules about that part judge it. `kind` is
    the type `object` is in; `requested_kind` the one the user sent, before the API server converted it.
    `name` is empty where the API server has yet to make one from `generate_name`. `old_object` is None on CREATE,
    `object` on DELETE.
    """

    kind: GroupVersionKind
    operation: Operation
    object: dict[str, Json] | None
    old_object: dict[str, Json] | None = None
    requested_kind: GroupVersionKind | None = None
    subresource: str = ""
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def shown_name(self) -> str:
        """The name for people: the stored one, or the prefix it will be made from with a `*`."""
        return self.name or (f"{self.generate_name}*" if self.generate_name else "")

    @cached_property
    def subjects(self) -> tuple[Subject, ...]:
        """Everything to judge: the object (the old one on DELETE) and every Pod template in it."""
        judged = self.old_object if self.operation is Operation.DELETE else self.object
        return subjects_of(self.kind, judged)

    @cached_property
    def old_subjects(self) -> tuple[Subject, ...]:
        """The same for the object before an UPDATE; empty otherwise."""
        return subjects_of(self.kind, self.old_object) if self.operation is Operation.UPDATE else ()


def subjects_of(kind: GroupVersionKind, obj: dict[str, Json] | None) -> tuple[Subject, ...]:
    """Return an object as a subject, and each Pod template in it as another."""
    if obj is None:
        return ()
    root = Field(obj)
    wrapper = Wrapper(kind, root)
    templates = (Subject(POD, template, wrapper) for template in pod_templates(kind.group, kind.kind, root))
    return (Subject(kind, root), *templates)
