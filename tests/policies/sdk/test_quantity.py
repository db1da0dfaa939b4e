from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpugate.policies.sdk.field import Unknown, UnknownValueError
from gpugate.policies.sdk.quantity import QuantityError, parse, parse_or_none

LARGEST = 2**63 - 1


# Compared with `kubectl set resources --local` v1.36.
@pytest.mark.parametrize(
    ("written", "amount"),
    [
        (1, 1),
        (0, 0),
        (-2, -2),
        (1.5, Fraction(3, 2)),
        (1e20, LARGEST),
        (10**30, LARGEST),
        ("1", 1),
        ("007", 7),
        ("+1", 1),
        ("-1", -1),
        ("-7.25Mi", -7 * 2**20 - 2**18),
        ("+7.25Mi", 7 * 2**20 + 2**18),
        ("5.", 5),
        (".5", Fraction(1, 2)),
        ("1000m", 1),
        ("1500m", Fraction(3, 2)),
        ("1e0", 1),
        ("1E3", 1000),
        ("1e+3", 1000),
        ("1.5e-3", Fraction(3, 2000)),
        ("1k", 1000),
        ("1E", 10**18),
        ("2Gi", 2**31),
        ("1u", Fraction(1, 10**6)),
        ("0.1n", Fraction(1, 10**9)),
        ("1e-10", Fraction(1, 10**9)),
        ("10Ei", LARGEST),
        ("9e99", LARGEST),
        (".", 0),
        ("m", 0),
        (" 1", 1),
        ("2Gi\u3000", 2**31),
        ("1e00000000000000000000003", 1000),
        ("1e4294967297", 10),
        ("1e-9223372036854775808", 1),
        ("1e-127", Fraction(1, 10**9)),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, LARGEST),
        ("9" * 24, LARGEST),
        ("9" * 25, LARGEST),
        ("n", 0),
        ("Ti", 0),
        (f"0.{'0' * 62}1e66", 1000),
    ],
    ids=repr,
)
def test_it_reads_what_the_api_server_reads(written: object, amount: int | Fraction) -> None:
    assert parse(written) == amount


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("", '"" is not a quantity'),
        ("8 GPUs", '"8 GPUs" is not a quantity: " GPUs" after the number is not a known suffix; write 8 alone'),
        ("two", '"two" is not a quantity: write a number'),
        ("+K", '"[+]K" is not a quantity: write a number'),
        ("-.5GB", "is not a known suffix; write -0.5 alone, or one of m, k, M, G, T, Ki, Mi, Gi, Ti$"),
        ("1.50GB", "is not a known suffix; write 1.50 alone"),
        ("1K", '"K" after the number'),
        ("1 2", '" 2" after the number'),
        ("\t1", "is not a quantity"),
        (" ", '"" is not a quantity'),
        ("Ei", '"Ei" is not a quantity'),
        ("Pi", '"Pi" is not a quantity'),
        ("1e-9223372036854775809", '"e-9223372036854775809" after the number'),
        (f"{'1' * 40}.{'1' * 25}", "has more than 64 digits"),
        ("x" * 40, '^"x{40}" is not a quantity'),
        ("x" * 41, r'^"x{37}\.\.\." is not a quantity'),
        (".e-10", '".e-10" is not a quantity'),
        ("1e", '"e" after the number'),
        ("1e9223372036854775808", '"e9223372036854775808" after the number'),
        ("1\n", "not a known suffix"),
        ("\u0661", "is not a quantity"),
        ("nan", "is not a quantity"),
        (float("nan"), "is not a quantity"),
        ("1" * 5000, "has more than 64 digits"),
        ("x" * 100, r'"x{37}\.\.\." is not a quantity'),
        (True, "a boolean is not a quantity"),
        (None, "null is not a quantity"),
        ([], "a list is not a quantity"),
        ({}, "an object is not a quantity"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_it_says_what_is_wrong_with_anything_else(written: object, says: str) -> None:
    with pytest.raises(QuantityError, match=says):
        parse(written)


@given(whole=st.integers(0, 10**18), decimals=st.integers(0, 10**6), power=st.integers(-9, 9))
def test_a_number_with_an_exponent_is_exact_up_to_a_billionth(whole: int, decimals: int, power: int) -> None:
    exact = Fraction(f"{whole}.{decimals}") * Fraction(10) ** power
    read = parse(f"{whole}.{decimals}e{power}")
    assert min(exact, LARGEST) <= read < exact + Fraction(1, 10**9)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(QuantityError):
        assert isinstance(parse(text), int | Fraction)


@given(st.text() | st.none() | st.integers())
def test_what_is_refused_is_no_amount(value: str | int | None) -> None:
    try:
        amount = parse(value)
    except QuantityError:
        amount = None
    assert parse_or_none(value) == amount


def test_the_amount_of_a_placeholder_is_unknown() -> None:
    with pytest.raises(UnknownValueError):
        parse_or_none(Unknown("${MEMORY}"))


@pytest.mark.parametrize(("place", "suffix"), [*enumerate(("", "k", "M", "G", "T", "P", "E"))])
def test_every_suffix_of_ten_is_a_thousand_times_the_one_before(place: int, suffix: str) -> None:
    assert parse(f"1{suffix}") == 1000**place


@pytest.mark.parametrize(("place", "suffix"), [*enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))])
def test_every_suffix_of_two_is_1024_times_the_one_before(place: int, suffix: str) -> None:
    assert parse(f"1{suffix}") == 1024**place


@pytest.mark.parametrize(("place", "suffix"), [*enumerate(("", "m", "u", "n"))])
def test_every_small_suffix_is_a_thousandth_of_the_one_before(place: int, suffix: str) -> None:
    assert parse(f"1{suffix}") == Fraction(1, 1000**place)


def test_letters_around_a_number_are_no_spaces() -> None:
    with pytest.raises(QuantityError):
        parse("X1")
