"""The schemas of one kind as they are kept: a list of nodes that name each other by their place in it.

Equal nodes are kept once, whichever versions and fields they belong to, so that the releases of a project share nearly
everything. Of an OpenAPI schema a node keeps what decides on an object; descriptions are left out.
"""

from __future__ import annotations

from typing import Any

import msgspec

Json = Any  # Any: the JSON edge
Expression = list[Any]  # a translated expression: an operation's name, then its operands


class Rule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A rule of `x-kubernetes-validations`, translated.

    Attributes:
        test: what must be true of `self`; empty when it could not be translated and is not judged.
        message: what the definition says when it is not.
        says: the expression that makes the message, where one does.
        path: the field below `self` that it is told of.
        transition: it reads `oldSelf`, so that it is judged on UPDATE only.
        written: the rule as the definition has it, in tables that a user added: those are translated when they are read,
            so that nothing in a file of theirs is run as it stands.
    """

    test: Expression = []
    message: str = ""
    says: Expression = []
    path: tuple[str, ...] = ()
    transition: bool = False
    written: dict[str, str] = {}


class Node(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The schema of one value; a number where another node is meant is its place in the table.

    The names are those of OpenAPI where they mean the same. `values` is the schema of an object's free members
    (`additionalProperties`), `defaults` holds the defaults of its members, `preserve` keeps unknown ones, `embedded`
    makes it an object with `apiVersion`, `kind` and `metadata` of its own. `quantity` is a text or a number that is a
    quantity of Kubernetes.
    """

    type: str = ""
    int_or_string: bool = False
    quantity: bool = False
    nullable: bool = False
    properties: dict[str, int] = {}
    values: int | None = None
    preserve: bool = False
    embedded: bool = False
    items: int | None = None
    required: tuple[str, ...] = ()
    defaults: dict[str, Json] = {}
    enum: tuple[Json, ...] = ()
    format: str = ""
    pattern: str = ""
    minimum: float | int | None = None
    maximum: float | int | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: float | int | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    all_of: tuple[int, ...] = ()
    any_of: tuple[int, ...] = ()
    one_of: tuple[int, ...] = ()
    none_of: int | None = None
    rules: tuple[Rule, ...] = ()


class Served(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A version of the kind in a release: its schema, whether its status is a subresource, and where its scale is."""

    root: int
    status: bool = False
    scale: tuple[str, ...] = ()


class Release(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A release of the project that defines the kind; `minor` is what a target names, empty for a file of the user's."""

    minor: str
    source: str
    served: dict[str, Served]


class Table(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Every schema of a kind.

    Attributes:
        group, kind: what it is.
        project: whose releases these are: `karpenter`, `keda` or `kubernetes`; empty for a file of the user's.
        namespaced: whether objects live in a namespace.
        releases: oldest first.
        nodes: the schemas.
    """

    group: str
    kind: str
    project: str
    namespaced: bool
    releases: tuple[Release, ...]
    nodes: tuple[Node, ...]
