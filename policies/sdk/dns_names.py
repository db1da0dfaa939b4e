"""The two forms that Kubernetes gives most names.

Source: `k8s.io/apimachinery/pkg/util/validation` v0.36 (IsDNS1123Label, IsDNS1123Subdomain).
"""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST_LABEL: Final = 63
_LONGEST_SUBDOMAIN: Final = 253


def is_label(name: str) -> bool:
    """Tell whether a name is a DNS label: at most 63 lower-case letters, digits and `-`, none of these at an end."""
    return len(name) <= _LONGEST_LABEL and _LABEL.fullmatch(name) is not None


def is_subdomain(name: str) -> bool:
    """Tell whether a name is a DNS subdomain: such labels, of any length, with dots between, at most 253 characters."""
    return len(name) <= _LONGEST_SUBDOMAIN and all(_LABEL.fullmatch(part) for part in name.split("."))
