"""What admission would say, in the words of a test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import near_misses
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.report import text, words
from gpugate.webhook.report.located import Located, Report, Severity, Sort

if TYPE_CHECKING:
    from collections.abc import Iterator

# What is found without a policy is asked for by these names.
_TROUBLES = frozenset(sort.value for sort in Sort if sort not in {Sort.VIOLATION, Sort.PATCH})


class Location(NamedTuple):
    """Where something was found: the file as it was named, and line and column from 1."""

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: who found it, where, what it says and what it costs (`enforce`, `warn`, `audit`)."""

    policy: str
    location: Location
    path: str
    message: str
    mode: str
    hint: str
    located: Located = field(repr=False)

    def __str__(self) -> str:
        return text.write(Report((self.located,)), quiet=True).rstrip("\n")


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """What was found in one object or in several.

    A test asks `answer.allowed`, `answer.denied_by("pods/...")` and `answer["pods/..."].location`. When it fails, pytest
    shows everything that was found, with frames of the files.
    """

    title: str
    located: tuple[Located, ...]

    @property
    def allowed(self) -> bool:
        """Whether nothing is denied."""
        return not any(each.severity is Severity.ERROR for each in self.located)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that was found; changes that admission makes are not among it."""
        return tuple(_finding(each) for each in self.located if not _is_made(each))

    def denied_by(self, *policies: str) -> bool:
        """Whether each of some policies denies it; with none, whether any does."""
        return self._have([each for each in self.located if each.severity is Severity.ERROR], policies)

    def warned_by(self, *policies: str) -> bool:
        """Whether each of some policies warns; with none, whether any does."""
        return self._have([each for each in self.located if each.stance is Stance.WARN], policies)

    def recorded_by(self, *policies: str) -> bool:
        """Whether each of some policies only records it; with none, whether any does."""
        return self._have([each for each in self.located if each.stance is Stance.AUDIT], policies)

    def mutated_by(self, *policies: str) -> bool:
        """Whether each of some policies changes it; with none, whether any does."""
        return self._have([each for each in self.located if _is_made(each)], policies)

    def __getitem__(self, policy: str) -> Finding:
        """Return the first finding of a policy; a KeyError says what was found instead."""
        _refuse_unknown(policy)
        found = next((each for each in self.located if words.code(each) == policy), None)
        if found is None:
            raise KeyError(f"{policy} finds nothing in {self!r}")
        return _finding(found)

    @property
    def report(self) -> str:
        """Everything that was found, with frames of the files."""
        return text.write(Report(self.located), quiet=True).rstrip("\n") or "nothing was found"

    def __repr__(self) -> str:
        lines = "; ".join(dict.fromkeys(self._in_short()))
        return f"<{self.title}: {'allowed' if self.allowed else 'DENIED'}{f' ({lines})' if lines else ''}>"

    def _in_short(self) -> Iterator[str]:
        for each in self.located:
            verb = "changes" if _is_made(each) else each.severity.value
            yield f"{words.code(each)} {verb}"

    def _have(self, located: list[Located], policies: tuple[str, ...]) -> bool:
        for policy in policies:
            _refuse_unknown(policy)
        found = {words.code(each) for each in located}
        return found.issuperset(policies) if policies else bool(found)


def _is_made(located: Located) -> bool:
    return located.sort is Sort.PATCH and bool(located.patches)


def _finding(located: Located) -> Finding:
    place = located.place
    return Finding(
        policy=words.code(located),
        location=Location(place.file, place.line, place.column),
        path=located.path,
        message=located.message,
        mode=located.stance.word if located.stance is not None else "",
        hint=located.hint,
        located=located,
    )


def _refuse_unknown(policy: str) -> None:
    """Keep a typo from passing in `assert not answer.denied_by(...)`."""
    known = {each.id for each in CATALOG} | _TROUBLES
    if policy not in known:
        near = near_misses(policy, known)
        meant = f"did you mean {near[0]}?" if near else "`gpugate policies` lists them"
        raise ValueError(f"no policy is called {policy}; {meant}")
