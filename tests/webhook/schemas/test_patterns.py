"""RE2's patterns as Python's: what they match, and which are refused."""

from __future__ import annotations

import pytest

from gpugate.webhook.schemas import places
from gpugate.webhook.schemas.patterns import PatternError, compiled, translated
from gpugate.webhook.schemas.tables import read

# Pattern -> texts in which it is found, texts in which it is not.
CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "^a$": (("a",), ("a\n", "\na", "A")),
    "a": (("bab",), ("b",)),
    r"\d": (("5",), ("\u0665", "a")),
    r"^\w+$": (("a_1",), ("é",)),
    r"a\sb": (("a b", "a\nb"), ("a\vb", "a\u00a0b")),
    r"a\Sb": (("a\vb",), ("a b",)),
    r"^[\s]$": ((" ",), ("\v",)),
    r"a\z": (("ba",), ("a\n",)),
    r"^.$": (("é",), ("\n", "")),
    "(?s)^.$": (("\n",), ("ab",)),
    "(?i)^ab$": (("aB",), ("b",)),
    "^[[:alpha:]]+$": (("aZ",), ("a1", "é")),
    "^[^[:digit:]]$": (("a",), ("1",)),
    "^[]a]$": (("]", "a"), ("b",)),
    "^[a[&&]$": (("[", "&"), ("b",)),
    r"^[\-\]]$": (("-", "]"), ("\\",)),
    "^a{2,3}$": (("aa", "aaa"), ("a", "aaaa")),
    "^a{,3}$": (("a{,3}",), ("aa",)),
    "^a+?$": (("aaa",), ("",)),
    "^(?:a|b)(?P<x>c)(?<y>d)$": (("acd",), ("cd",)),
    r"^a\.b\/c$": (("a.b/c",), ("axb/c",)),
    "^(([0-9]+(s|m|h))+|Never)$": (("1h30m", "Never"), ("30d", "1h ", "Never\n")),
}  # fmt: skip


@pytest.mark.parametrize("pattern", CASES)
def test_a_pattern_is_found_where_re2_finds_it(pattern: str) -> None:
    found, missed = CASES[pattern]

    assert [text for text in (*found, *missed) if compiled(pattern).search(text)] == list(found)


REFUSED: dict[str, str] = {
    r"\Qa\E": "is not translated",
    r"\pL": "is not translated",
    r"\C": "is not translated",
    "(?=a)": "groups or flags",
    "(?m)^a$": "groups or flags",
    "a*+": "repeats a repetition",
    "a**": "repeats a repetition",
    r"[\S]": "in a class is not translated",
    "[[:punct:]]": "is not translated",
    "[a": "not closed",
    "[+--]": "-- in a class",
    "(a": "cannot be read",
    "(a+)+": "repeats what repeats itself",
    "(a|b*)*c": "repeats what repeats itself",
    "(a{2,})*": "repeats what repeats itself",
    "a*b*c*": "too much",
    "a{0,99}b{9,}c+": "too much",
    "(a{0,50})*": "repeats what repeats itself",
    "(a|a)*b": "could take long",
    "^(?:aa|a(b|c)*)*$": "could take long",
    "^((a?){20}){20}b": "could take long",
    "^(a|a){40}$": "could take long",
    "a*a*b": "could take long",
    "^a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?aaaa$": "could take long",
    "(?i)^(a|A)*$": "could take long",
    "[[:^alpha:]]": "is not translated",
}  # fmt: skip


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_pattern_that_differs_or_takes_long_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError) as raised:
        translated(pattern)

    assert REFUSED[pattern] in str(raised.value)


@pytest.mark.parametrize(
    "pattern",
    [
        "^[a-z]+$",
        "^a(b|c)*d+$",
        r"^([0-9a-f]{2}:){5}[0-9a-f]{2}$",
        r"^arn:aws:iam::[0-9]{12}:role/.+$",
        "^[a-f0-9]{64}$",
        "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    ],
)
def test_an_ordinary_pattern_of_a_user_is_taken(pattern: str) -> None:
    assert translated(pattern)


def test_every_pattern_that_comes_along_is_translated() -> None:
    tables = [read(file) for file in places.listed(places.BUNDLED)]
    patterns = {node.pattern for table in tables for node in table.nodes if node.pattern}

    assert len(patterns) > 20
    assert all(compiled(pattern) for pattern in patterns)
