"""The stored schemas of one kind: a list of nodes that refer to each other by their index.

Equal nodes are stored once, regardless of their versions and fields, so that the releases of a project share nearly
all of them. A node has the members of an OpenAPI schema that validation needs, without descriptions.
"""

from __future__ import annotations

from typing import Any

import msgspec

Json = Any  # Any: the JSON edge


class Rule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A rule of `x-kubernetes-validations`.

    Attributes:
        test: the CEL expression that must be true of `self`; empty if it is not supported and is not evaluated.
        message: the message of the definition.
        says: the expression that computes the message, if any.
        path: the field below `self` at which a violation is reported.
        transition: it reads `oldSelf`, so that it is evaluated on UPDATE only.
        written: the rule in the form of the definition, in tables that a user added: the other members are derived when
            the table is read.
    """

    test: str = ""
    message: str = ""
    says: str = ""
    path: tuple[str, ...] = ()
    transition: bool = False
    written: dict[str, str] = {}


class Node(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The schema of one value; it refers to another node by its index in the table.

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
