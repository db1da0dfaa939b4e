"""How a request ended: what its user got, and what the API server's audit log says that policies made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]
_OURS = "gpugate.dev"
_DENIED = "admission webhook "
# What policies found or changed; `skip`, `error` and `generation` are about the webhook.
FOUND = ("deny", "warn", "record", "mutate")


@dataclass(frozen=True)
class Ended:
    """The end of one request.

    Attributes:
        code: the HTTP status.
        message: why it was refused; empty when it was not.
        warnings: the texts of its Warning headers.
        said: the policies by the word that the webhooks' audit annotations have for what they did.
        stored: the object in the answer; None when it was refused.
    """

    code: int
    message: str
    warnings: tuple[str, ...]
    said: Mapping[str, frozenset[str]]
    stored: Json | None

    @property
    def denied(self) -> bool:
        """Whether a webhook of gpugate's denied it."""
        return self.message.startswith(_DENIED) and _OURS in self.message.split('"')[1]

    @property
    def refused(self) -> bool:
        """Whether the API server itself refused it."""
        return self.stored is None and not self.denied

    @property
    def found(self) -> dict[str, frozenset[str]]:
        """What policies found or changed: the words of `FOUND` that were said, and the policies."""
        return {word: self.said[word] for word in FOUND if word in self.said}

    @property
    def policies(self) -> frozenset[str]:
        """Every policy that found or changed something."""
        return frozenset().union(*self.found.values())


def said(annotations: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Read the annotations of an audit event that are gpugate's, those of all its webhooks together."""
    words: dict[str, set[str]] = {}
    for key, policies in annotations.items():
        webhook, _, word = key.partition("/")
        if webhook.endswith(_OURS):
            words.setdefault(word, set()).update(policies.split(","))
    return {word: frozenset(policies) for word, policies in words.items()}
