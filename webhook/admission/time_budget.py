"""How long a review may be judged: what the API server says it waits, less what is needed for everything else."""

from __future__ import annotations

import re
from typing import Final

# What the API server waits without a `timeoutSeconds`, and the most that it may be told to
# (`k8s.io/api` admissionregistration/v1 types.go, v0.36).
DEFAULT_SECONDS: Final = 10.0
MOST_SECONDS: Final = 30.0
# The rest is for the way here and back, and for one policy that takes long.
_SHARE: Final = 0.8

_TIMEOUT = re.compile(r"(?:^|&)timeout=([^&]*)")
_LONGEST: Final = 32
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:e[0-9]+)?)(h|ms|m|s)")
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def seconds_left(query: bytes | str, waited: float) -> float:
    """Return for how many seconds a review may be judged; none are left when it is 0.

    The API server says in `?timeout=` how long it waits, as Go writes durations, in whole seconds
    (`k8s.io/apiserver` pkg/admission/plugin/webhook, `k8s.io/client-go` rest/request.go, v1.36). The first one counts;
    without one that can be read it is taken to wait 10 s, and never more than 30 s.

    Args:
        query: the query of the URL, as it stands there.
        waited: seconds that the review has waited since it came.
    """
    text = query if isinstance(query, str) else query.decode("latin-1")
    found = _TIMEOUT.search(text)
    timeout = _seconds(found[1]) if found else DEFAULT_SECONDS
    return max(0.0, timeout * _SHARE - waited)


def _seconds(text: str) -> float:
    total, position = 0.0, 0
    while position < len(text) <= _LONGEST:
        part = _AMOUNT.match(text, position)
        if part is None:
            break
        total += float(part[1]) * _UNITS[part[2]]
        position = part.end()
    # No time at all is no answer to any review: whoever writes that does not mean it.
    return min(total, MOST_SECONDS) if total > 0 and position == len(text) else DEFAULT_SECONDS
