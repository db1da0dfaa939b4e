"""What an amount of a resource is: as the API server reads it in an object."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from hypothesis import assume, example, given
from oracle.process import Oracle, Refused
from oracle.quantity_strategies import is_endless, numbers, texts

from gpugate.policies.sdk import quantity
from gpugate.policies.sdk.quantity import QuantityError

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

# The API server's documentation says that amounts are capped here; its code does it for `Ki` to `Ei` only. Ours are
# capped whatever the suffix: no resource has more, and a number of any size would cost time.
GREATEST = 2**63 - 1
MOST_DIGITS = 64


def theirs(oracle: Oracle, value: Json) -> Fraction | None:
    try:
        exact = Fraction(oracle.ask("quantity", value))
    except Refused:
        return None
    return max(Fraction(-GREATEST), min(Fraction(GREATEST), exact))


def ours(value: Json) -> Fraction | None:
    try:
        return Fraction(quantity.parse(value))
    except QuantityError:
        return None


@given(texts)
@example("Ei")
@example(".e-10")
@example("1e4294967297")
@example(f"0.{'0' * 60}1e80")
@example("1e0000000000000000000000000000000001")
def test_a_text_is_the_same_amount(oracle: Oracle, text: str) -> None:
    # More digits are refused on purpose: an amount that anybody means has less than twenty.
    assume(sum(character.isdigit() for character in text) <= MOST_DIGITS and not is_endless(text))

    assert ours(text) == theirs(oracle, text)


@given(numbers)
def test_a_number_is_the_same_amount(oracle: Oracle, number: float) -> None:
    assert ours(number) == theirs(oracle, number)
