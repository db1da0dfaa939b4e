"""Laws for every example of the library when it is sent through the API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api_server.library import FILES, as_it_says, deletion, known_by_name, unchanged, with_generated_name, with_object
from example_laws import for_each_example

if TYPE_CHECKING:
    from api_server.outcomes import Outcome


examples = for_each_example(FILES)


def patches(outcome: Outcome) -> list[bytes]:
    return [call.response.patch for call in outcome.calls if call.response.patch]


def words(outcome: Outcome) -> set[str]:
    """Return the decisions on the request, in the words of the audit annotations."""
    return {key.partition("/")[2] for key in outcome.audit_annotations} - {"skip", "generation"}


def decision(outcome: Outcome) -> tuple[object, ...]:
    """Return the parts of an outcome that must not depend on how the same request is sent."""
    return outcome.admitted, outcome.message, outcome.warnings, dict(outcome.audit_annotations), patches(outcome)


@examples
def test_mutated_again_it_stays_as_it_is(name: str, library: Any) -> None:
    mutated = library.outcome(name).mutated
    again = library(name).admit(with_object(name, mutated))
    assert (patches(again), again.mutated) == ([], mutated)


@examples
def test_a_delete_is_allowed_without_warnings(name: str, library: Any) -> None:
    outcome = library(name).admit(deletion(name))
    assert (outcome.admitted, patches(outcome), outcome.warnings, words(outcome)) == (True, [], (), set())


@examples
def test_an_unchanged_update_is_allowed(name: str, library: Any) -> None:
    outcome = library(name).admit(unchanged(name))
    assert (outcome.admitted, patches(outcome), words(outcome) - {"warn", "record"}) == (True, [], set())


@examples
def test_a_dry_run_is_decided_alike(name: str, library: Any) -> None:
    dry = library(name).admit(as_it_says(name).as_dry_run())
    assert decision(dry) == decision(library.outcome(name))


@examples
def test_v1beta1_is_decided_alike(name: str, library: Any) -> None:
    beta = library(name, version="v1beta1").admit(as_it_says(name))
    assert decision(beta) == decision(library.outcome(name))


@for_each_example(name for name in FILES if not known_by_name(name))
def test_a_generated_name_is_decided_alike(name: str, library: Any) -> None:
    generated, named = library(name).admit(with_generated_name(name)), library.outcome(name)
    assert (generated.admitted, generated.audit_annotations) == (named.admitted, named.audit_annotations)
