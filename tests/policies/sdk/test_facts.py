"""Other objects, known or not."""

from __future__ import annotations

import pytest

from gpugate.policies.sdk.facts import Fact, Known, NoFacts, Unavailable, may_come, named, object_doubt
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Skip
from gpugate.policies.sdk.objects import JOB

OBJECT = Field({"metadata": {"name": "a"}})


@pytest.mark.parametrize(
    ("fact", "name", "found", "coming"),
    [
        (Known((OBJECT,), complete=True), "a", OBJECT, False),
        (Known((OBJECT,), complete=True), "b", None, True),
        (Known((OBJECT,), complete=False), "a", OBJECT, False),
        (Known((OBJECT,), complete=False), "b", None, False),
        (Unavailable("no cluster"), "a", None, False),
    ],
    ids=["known", "not yet known", "known among others", "perhaps somewhere else", "nothing is known"],
)
def test_an_object_is_known_or_may_come(fact: Fact, name: str, found: Field | None, coming: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert (named(fact, name), may_come(fact, name)) == (found, coming)


@pytest.mark.parametrize(
    ("fact", "name", "doubt"),
    [
        (Known((OBJECT,), complete=True), "a", None),
        (Known((OBJECT,), complete=True), "b", None),
        (Known((OBJECT,), complete=False), "a", None),
        (Known((OBJECT,), complete=False), "b", Skip("Job b was not found, but may exist")),
        (Unavailable("no cluster"), "a", Skip("no cluster")),
    ],
    ids=["known", "known to be missing", "known among others", "perhaps somewhere else", "nothing is known"],
)
def test_whether_an_object_exists_is_known_or_a_doubt(fact: Fact, name: str, doubt: Skip | None) -> None:
    assert object_doubt(fact, JOB, name) == doubt


def test_without_facts_nothing_is_available() -> None:
    assert NoFacts().list(JOB, "ml") == Unavailable("no jobs to look up")
