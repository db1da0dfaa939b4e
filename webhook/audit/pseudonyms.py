"""Replaces names in texts by pseudonyms: the same name by the same one, and nothing by a name of somebody else's."""

from __future__ import annotations

import hashlib
import hmac
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from gpugate.webhook.audit.vocabulary import TOKEN, vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.policies.sdk.field import Json

# Long runs of digits are account numbers and the like.
_NUMBER: Final = re.compile(r"v?\d{1,10}(?:[.,:x%+-]\d{1,10})*[%+]?[A-Za-z]{0,3}")
# Some clusters call nodes by their addresses.
_ADDRESS: Final = re.compile(r"\d+\.\d+\.\d+\.\d+(?:[:/]\d+)?")
_INSTANCE_TYPE: Final = re.compile(
    r"[a-z]{1,4}\d[a-z0-9-]{0,8}\.(?:metal(?:-\d+xl)?|(?:\d{0,3}x)?large|medium|small|micro|nano)"
)
_REGION: Final = re.compile(
    r"(?:af|ap|ca|cn|eu|il|me|mx|sa|us)-(?:gov-)?(?:north|south|east|west|central){1,2}-\d[a-z]?"
)
_FORMS: Final = (_NUMBER, _INSTANCE_TYPE, _REGION)
_SLICE: Final = re.compile(r"mig-\d+g\.\d+gb(?:\.\w+)?")
_COUNTED: Final = re.compile(r"\d+-(.+)")
_PATH_ROOTS: Final = ("spec", "metadata", "status")
# The word after a kind is a name, unless it is one that goes on with the sentence.
_GOES_ON: Final = re.compile(
    r"a|admission|all|alone|already|also|and|answers|are|as|ask|asks|at|be|beside|but|by|can|"
    r"cannot|could|does|each|for|from|had|has|have|if|in|instead|into|is|it|its|lacks|"
    r"launches|makes|may|must|named|names|needs|no|nor|not|of|off|on|one|only|or|says|scales|"
    r"selects|sets|should|so|such|takes|than|that|the|their|them|then|there|these|they|this|"
    r"to|under|until|uses|was|were|when|where|which|while|who|whose|will|with|without|would",
    re.IGNORECASE,
)


class Pseudonyms:
    """Pseudonyms under one salt.

    A text keeps the words of gpugate's own source, numbers and instance types; everything else in it becomes a pseudonym,
    and so does each of the `names` even where it is such a word.
    """

    def __init__(self, salt: bytes, names: Iterable[str]) -> None:
        self._salt = salt
        self._names = frozenset(name for name in names if name)
        self._words = vocabulary()
        self._kinds: frozenset[str] = frozenset()
        self._replaced = lru_cache(maxsize=65536)(self._token)

    def with_kinds(self, kinds: Iterable[str]) -> Pseudonyms:
        """Take the word after each of these kinds for a name; return this."""
        self._kinds = frozenset(kinds)
        return self

    def of(self, name: str, sort: str = "name") -> str:
        """Return the pseudonym of a name; nothing for nothing. A prefix that ends in `*` keeps the star."""
        if not name or name == "*":
            return name
        digest = hmac.new(self._salt, name.rstrip("*").encode(), hashlib.sha256).hexdigest()
        return f"{sort}-{digest[:12]}{'*' if name.endswith('*') else ''}"

    def text(self, text: str) -> str:
        """Return a sentence, a path or a value without names."""
        last, end = "", 0

        def replaced(match: re.Match[str]) -> str:
            nonlocal last, end
            token, follows = match[0], last in self._kinds and text[end : match.start()].isspace()
            last, end = token, match.end()
            if follows and not _GOES_ON.fullmatch(token):
                return self._named(token)
            return self._replaced(token)

        return TOKEN.sub(replaced, text)

    def value(self, value: Json) -> Json:
        """Return a JSON value whose texts and keys are without names."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(element) for element in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(member) for key, member in value.items()}
        return value

    def _named(self, token: str) -> str:
        """`ml/finetune` is a name in a namespace; an instance type or a number is none."""
        return "/".join(part if _NUMBER.fullmatch(part) else self.of(part) for part in token.split("/"))

    def _token(self, token: str) -> str:
        if token in self._names:
            return self.of(token)
        if self._is_ours(token):
            return token
        if "/" in token and "." not in token.partition("/")[0]:
            return "/".join(self._token(part) for part in token.split("/"))
        if token.startswith(_PATH_ROOTS) and "." in token:
            return ".".join(self._token(part) for part in token.split("."))
        return self.of(token)

    def _is_ours(self, token: str) -> bool:
        if token in self._names or _ADDRESS.fullmatch(token):
            return False
        if any(form.fullmatch(token) for form in _FORMS):
            return True
        domain, slash, rest = token.partition("/")
        if slash:
            known = self._is_word(token) or (
                self._is_word(domain) and all(map(self._is_public, re.split("[/:]", rest)))
            )
            return "." in domain and known
        return self._is_word(token) or self._is_compound(token)

    def _is_compound(self, token: str) -> bool:
        """Tell whether a token is made of our words: `8-GPU`, `nodepools.karpenter.sh` as RBAC has it, a path."""
        counted = _COUNTED.fullmatch(token)
        if counted:
            return self._is_word(counted[1])
        resource, _, group = token.partition(".")
        if "." in group and self._is_word(group) and resource not in self._names:
            return self._is_word(resource)
        parts = re.split("[.:@]", token)
        return len(parts) > 1 and all(map(self._is_ours, parts))

    def _is_word(self, text: str) -> bool:
        return text.casefold() in self._words

    def _is_public(self, text: str) -> bool:
        """Tell whether a key under a public domain is one that we know, also where an object has the same name."""
        return self._is_word(text) or bool(_NUMBER.fullmatch(text) or _SLICE.fullmatch(text))
