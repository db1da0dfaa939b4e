"""The AdmissionReview as it stands on the wire (`k8s.io/api` admission/v1 and v1beta1, v0.36).

The request is checked strictly, because a member of the wrong type would make it mean something else; members that are
not known here are ignored, because new versions of Kubernetes add some.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from gpugate.policies.sdk.request import Operation

API_VERSIONS = frozenset({"admission.k8s.io/v1", "admission.k8s.io/v1beta1"})
KIND = "AdmissionReview"


class _Wire(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class WireKind(_Wire):
    """The type of an object; the core group is the empty string."""

    group: str
    version: str
    kind: str


class WireResource(_Wire):
    """The resource an object is served as."""

    group: str
    version: str
    resource: str


class WireUser(_Wire):
    """Who made the request, after impersonation."""

    username: str | None = None
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class WireRequest(_Wire):
    """The `request` of an AdmissionReview.

    `kind` is the type the object is in; `requestKind` the one the user sent, before the API server converted it to
    what the webhook's rules name. Names are empty where the API server has yet to make one.
    """

    kind: WireKind
    resource: WireResource
    operation: Annotated[Operation, Field(strict=False)]
    request_kind: Annotated[WireKind | None, Field(alias="requestKind")] = None
    subresource: Annotated[str | None, Field(alias="subResource")] = None
    name: str | None = None
    namespace: str | None = None
    user: Annotated[WireUser | None, Field(alias="userInfo")] = None
    object: dict[str, Any] | None = None
    old_object: Annotated[dict[str, Any] | None, Field(alias="oldObject")] = None
    dry_run: Annotated[bool | None, Field(alias="dryRun")] = None
