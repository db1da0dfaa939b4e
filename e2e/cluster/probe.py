"""Asks a program on loopback whether it is ready."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

# Whoever else has the port may not answer at all.
_SECONDS = 1


def answers(url: str, trust: ssl.SSLContext | None = None) -> bool:
    """Tell whether a URL answers with 200; `trust` where it may be https."""
    context = trust if url.startswith("https:") else None
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS, context=context) as answer:  # noqa: S310 -- on loopback
            return bool(answer.status == 200)
    except urllib.error.HTTPError as error:
        error.close()
    except OSError:
        pass
    return False
