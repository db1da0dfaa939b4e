"""What stands in a `*.gpugate-test.yaml` file; strict, so that a typo is refused and never passes as a test."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta

from gpugate.policies.sdk.platform import ClusterIdentity, Version

# An object as itself, the file that holds it, or one of the forms below.
Given = str | dict[str, Any]  # Any: the JSON edge


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A section that refuses keys it does not know."""


class FromFile(_Strict, frozen=True, kw_only=True):
    """One object out of a file that holds several."""

    file: Annotated[str, Meta(description="path, from the case file's folder")]
    kind: str = ""
    name: str = ""
    namespace: str = ""


class Merged(_Strict, frozen=True, kw_only=True):
    """An object with differences."""

    base: Annotated[Given, Meta(description="the object that differs: a file, or the object itself")]
    patch: Annotated[dict[str, Any], Meta(description="JSON merge patch (RFC 7386): null removes a field")]


class Asked(_Strict, frozen=True, kw_only=True):
    """What the API server is asked to do, and by whom."""

    operation: Annotated[
        Literal["CREATE", "UPDATE", "DELETE", "CONNECT"] | None,
        Meta(description="default: CREATE, or UPDATE where `old` is given"),
    ] = None
    old: Annotated[Given | None, Meta(description="the object before an UPDATE")] = None
    subresource: Annotated[str, Meta(description="such as `scale` or `ephemeralcontainers`")] = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    namespace: Annotated[str, Meta(description="of an object that names none; default: default")] = ""
    namespace_labels: Annotated[
        dict[str, str] | None, Meta(description="the labels of the namespace that the object is in")
    ] = None
    dry_run: bool = False


class TargetVersions(_Strict, frozen=True, kw_only=True):
    """The versions that policies assume, where they differ from the configuration's."""

    kubernetes: Version | None = None
    karpenter: Version | None = None
    keda: Version | None = None


class Where(_Strict, frozen=True, kw_only=True):
    """A place: the field as findings show it, the line (from 1) of the file that the object is read from, or both."""

    path: str | None = None
    line: Annotated[int, Meta(ge=1)] | None = None


Places = str | Where | tuple[str | Where, ...]


class PatchOperation(_Strict, frozen=True, kw_only=True):
    """An operation of RFC 6902 as the API server gets it."""

    op: Literal["add", "replace", "remove"]
    path: Annotated[str, Meta(description="JSON pointer (RFC 6901)")]
    value: Any = UNSET


class Expect(_Strict, frozen=True, kw_only=True):
    """What the verdict is; what it says beyond that fails the test, unless `also: any`."""

    allow: Annotated[bool | None, Meta(description="whether the request goes through")] = None
    deny: Annotated[tuple[str, ...], Meta(description="policies that refuse it")] = ()
    warn: Annotated[tuple[str, ...], Meta(description="policies that warn")] = ()
    record: Annotated[tuple[str, ...], Meta(description="policies that only record what they find (audit)")] = ()
    mutate: Annotated[
        tuple[str, ...],
        Meta(description="policies that change the object, or the Pods of its template when they are created"),
    ] = ()
    skip: Annotated[tuple[str, ...] | None, Meta(description="policies that are not evaluated; exact if given")] = None
    malformed: Annotated[tuple[str, ...], Meta(description="fields of a type that the API server refuses")] = ()
    at: Annotated[dict[str, Places], Meta(description="policy -> every place at which it finds something")] = {}
    message: Annotated[
        dict[str, str | tuple[str, ...]],
        Meta(description="policy -> texts, each of which one of its messages contains"),
    ] = {}
    patch: Annotated[tuple[PatchOperation, ...] | None, Meta(description="every operation, in order")] = None
    fixed: Annotated[Given | None, Meta(description="the object as it would be stored")] = None
    also: Annotated[Literal["any"] | None, Meta(description="`any`: other findings do not fail the test")] = None


class Setting(_Strict, frozen=True, kw_only=True):
    """What surrounds the object of a test; `defaults` hold it for each test of a file that says nothing else."""

    policy_file: Annotated[str | None, Meta(description="path of the policy file, from the case file's folder")] = None
    config: Annotated[dict[str, Any] | None, Meta(description="the policy configuration itself, in its place")] = None
    target: TargetVersions | None = None
    cluster: Annotated[
        ClusterIdentity | None,
        Meta(description="the cluster, for `clusters` of the configuration; default: what holds in all clusters"),
    ] = None
    request: Asked = Asked()
    context: Annotated[tuple[Given, ...], Meta(description="other objects that exist; files hold any number")] = ()
    complete_context: Annotated[bool | None, Meta(description="whether no others exist")] = None
    today: Annotated[dt.date | None, Meta(description="the day, for exemptions that end; default: the real one")] = None


class Definition(Setting, frozen=True, kw_only=True):
    """One test."""

    name: Annotated[str, Meta(min_length=1)]
    object: Annotated[Given, Meta(description="the evaluated object")]
    expect: Expect
    parametrize: Annotated[
        dict[str, tuple[Any, ...]] | tuple[dict[str, Any], ...],
        Meta(description="values for `{NAME}` anywhere in this test: lists to combine, or a list of combinations"),
    ] = {}


class CaseFileFormat(_Strict, frozen=True, kw_only=True):
    """A whole file."""

    tests: Annotated[tuple[Definition, ...], Meta(min_length=1)]
    defaults: Setting = Setting()
