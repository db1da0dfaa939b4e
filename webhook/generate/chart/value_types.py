r"""What the chart's values are made of.

Patterns end with `\Z`, because Python's `$` also stands before a last line break, where that of Helm (RE2) does not.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias, TypedDict

import msgspec

# As the API server has them; it checks them itself.
Object: TypeAlias = dict[str, Any]
Texts: TypeAlias = dict[str, str]
Quantity: TypeAlias = str | int | float
Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Percent: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=100)]
Port: TypeAlias = Annotated[int, msgspec.Meta(ge=1024, le=65535)]
# The API server takes up to 30, and whoever writes the object waits for as long.
Timeout: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=10)]
# A name of an object, or nothing.
Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=253, pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?\Z")]
# Other names are made of it, of which some may have 63 characters.
ShortName: TypeAlias = Annotated[str, msgspec.Meta(max_length=40, pattern=r"^([a-z]([-a-z0-9]*[a-z0-9])?)?\Z")]
NAMESPACE_NAME: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z"
NamespaceName: TypeAlias = Annotated[str, msgspec.Meta(max_length=63, pattern=NAMESPACE_NAME)]
# Without a tag Kubernetes takes `latest`, which is another program tomorrow.
Tag: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")]
Digest: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^(sha256:[0-9a-f]{64})?\Z")]
Repository: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9.:/_-]+\Z")]
Url: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^(https://[^/?#@]+)?\Z")]
Duration: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^([0-9]+(h|m|s))+\Z")]
# `system:serviceaccount:NAMESPACE:NAME`: whole, so that nobody is meant who is called alike.
ServiceAccountUser: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^system:serviceaccount:[a-z0-9-]+:[a-z0-9.-]+\Z")]
# A name or pattern of a platform, which is written into match conditions, where quotes or brackets would end something.
OWN_NAME: Final = r"^[A-Za-z0-9*]([A-Za-z0-9./_*-]*[A-Za-z0-9*])?\Z"


class Resources(TypedDict, total=False):
    """Resources of a container; the API server knows what else there may be."""

    limits: dict[str, Quantity]
    requests: dict[str, Quantity]


class Section(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel", omit_defaults=False
):
    """A section that refuses keys it does not know."""
