"""The patch of an answer: RFC 6902 operations as JSON that says exactly what was judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.engine.patching import Operation

# The API server reads an answer whole, whatever its size (`k8s.io/client-go` rest/request.go, v0.36), and objects
# that etcd keeps are of 1.5 MiB at most.
LARGEST: Final = 1024 * 1024
_STRICT: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


def written(operations: Sequence[Operation]) -> bytes:
    """Write operations as JSON.

    Raises:
        ValueError: JSON would say something else than their values: NaN, a date, a lone surrogate.
    """
    data = orjson.dumps(operations, option=_STRICT)
    if orjson.loads(data) != list(operations):
        raise ValueError("a patch holds a value that JSON does not have")
    return data
