"""Asks a program on loopback whether it is ready."""

from __future__ import annotations

import urllib.error
import urllib.request

# Whoever else has the port may not answer at all.
_SECONDS = 1


def answers(url: str) -> bool:
    """Tell whether a URL, http, answers with 200."""
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310 -- on loopback
            return bool(answer.status == 200)
    except urllib.error.HTTPError as error:
        error.close()
    except OSError:
        pass
    return False
