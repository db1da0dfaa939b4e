"""Why a text is left alone."""

from __future__ import annotations


class EditError(Exception):
    """A text cannot be changed safely; the message says which shape of it stands in the way."""
