"""What the API server fills in between mutation and validation of a CREATE: the name, the uid, the first generation.

Source: `k8s.io/apiserver` pkg/registry/rest/create.go (`BeforeCreate`, `AdmissionToValidateObjectFunc`), v1.36; the
captured reviews of Pods that a Job makes show it.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from api_server.attributes import Attributes

# Of a generated suffix: no vowels, nothing that looks like another.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_PREFIX = 58


def before_create(attributes: Attributes) -> Attributes:
    """Return the attributes as validating webhooks see them; only a CREATE of an object with metadata differs."""
    obj = attributes.object
    if attributes.operation != "CREATE" or attributes.subresource or obj is None:
        return attributes
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return attributes
    name = metadata.get("name") or _generated(metadata.get("generateName"))
    made = {
        "name": name,
        **{key: value for key, value in metadata.items() if key != "name"},
        "uid": str(uuid.uuid4()),
        "generation": 1,
        "creationTimestamp": "2026-11-21T03:08:12Z",
    }
    if not name:
        del made["name"]
    return replace(attributes, name=attributes.name or name, object=obj | {"metadata": made})


def _generated(prefix: object) -> str:
    if not isinstance(prefix, str) or not prefix:
        return ""
    return prefix[:_LONGEST_PREFIX] + "".join(random.choices(_LETTERS, k=5))  # noqa: S311 -- names, not secrets
