"""RE2's patterns as Python's: what they match, and which are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpugate.policies.cel.patterns import LONGEST, QUICKER, SCHEDULE, PatternError, compiled, refuses, translated
from gpugate.webhook.schemas import tables
from gpugate.webhook.schemas.tables import read

BUNDLED = {
    node.pattern for file in tables.listed(tables.BUNDLED) for node in read(file).nodes if node.pattern
}  # fmt: skip
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
    "^[[:alnum:]]$": (("a", "1"), ("_", "é")),
    "^[[:xdigit:]]$": (("9", "f", "F"), ("g",)),
    "^[[:lower:]][[:upper:]]$": (("aZ",), ("Za",)),
    "^[[:word:]]$": (("a", "_"), ("-", "é")),
    "^[[:space:]]$": (("\v", " "), ("\u00a0",)),
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
    r"(\d|\w)*b": "could take long",
    r"[\b]": "in a class is not translated",
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
    assert len(BUNDLED) > 20
    assert all(compiled(pattern) for pattern in BUNDLED)


def test_every_pattern_that_comes_along_takes_no_long_time() -> None:
    assert all(translated(QUICKER.get(pattern, pattern)) for pattern in BUNDLED if pattern != SCHEDULE)


def test_what_is_judged_in_another_way_comes_along() -> None:
    assert {SCHEDULE, *QUICKER} <= BUNDLED


@pytest.mark.parametrize(
    "text",
    ["0 9 * * mon-fri", "*/5 1-3 * * *", "@daily", "@hourly ", "CRON_TZ=UTC 0 9 * * 1", "0  9 * * *", "0\t9 * * *"],
)
def test_a_schedule_is_taken(text: str) -> None:
    assert not refuses(SCHEDULE, text)


@pytest.mark.parametrize("text", ["", "daily", " @daily", "@fortnightly", "0 9 * *", "0 9 * * *\n", "0\v9 * * *"])
def test_what_is_no_schedule_is_refused(text: str) -> None:
    assert refuses(SCHEDULE, text)


@given(st.text("@daily0* \t\n\r\f\v\u00a0\u2028", max_size=24) | st.text(" 0\n", max_size=14))
def test_a_schedule_is_judged_as_its_pattern_says(text: str) -> None:
    assert refuses(SCHEDULE, text) is (compiled(SCHEDULE).search(text) is None)


@pytest.mark.parametrize("pattern", QUICKER)
@given(st.text("+-.%10 \n", max_size=10))
def test_a_quicker_pattern_finds_the_same(pattern: str, text: str) -> None:
    assert refuses(pattern, text) is (compiled(pattern).search(text) is None)


def test_a_schedule_is_judged_whatever_its_length() -> None:
    assert [refuses(SCHEDULE, text) for text in ("0 " * 50_000, " " * 50_000 + "\n")] == [False, True]


def test_a_long_text_is_refused_only_by_a_pattern_that_is_known_to_be_quick() -> None:
    patterns = ("^([0-9]+(s|m|h))+$", "^[a-z]+$")

    assert [refuses(pattern, "1" * (LONGEST + 1)) for pattern in patterns] == [True, False]
