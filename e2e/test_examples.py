"""Every example of the policy library ends at a real API server as its header says.

What the API server itself does to an example is written down in `expectations/`, so that a change of it is seen.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from library.as_stored import as_stored
from library.cases import FILES, case
from library.ended import FOUND
from library.expectations import PRUNED, REFUSED, expected
from library.mutations import is_fixed
from library.run import library_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cluster.control_plane import ControlPlane
    from cluster.served_webhook import ServedWebhook
    from library.ended import Ended
    from library.run import Sent

JUDGED = [name for name in FILES if name not in REFUSED]
PAIRS = [name for name in JUDGED if name.replace("/bad-", "/fixed-") in {*JUDGED} - {name} and is_fixed(case(name))]


def short(name: str) -> str:
    return name.replace("/examples", "")


@pytest.fixture(scope="module")
def sent(control_plane: ControlPlane, webhook: ServedWebhook) -> Mapping[str, Sent]:
    return library_run(control_plane, webhook)


@pytest.mark.parametrize("name", REFUSED, ids=short)
def test_the_api_server_refuses_it_for_what_is_written_down(name: str, sent: Mapping[str, Sent]) -> None:
    assert REFUSED[name] in sent[name].refusal


@pytest.mark.parametrize("name", JUDGED, ids=short)
def test_the_api_server_does_not_refuse_it(name: str, sent: Mapping[str, Sent]) -> None:
    assert sent[name].refusal == ""


@pytest.mark.parametrize("name", JUDGED, ids=short)
def test_policies_find_and_change_what_its_header_says(name: str, sent: Mapping[str, Sent]) -> None:
    assert sent[name].ended.policies == expected(case(name))


@pytest.mark.parametrize("name", JUDGED, ids=short)
def test_a_dry_run_ends_alike(name: str, sent: Mapping[str, Sent]) -> None:
    assert outcome(sent[name].dry_run) == outcome(sent[name].ended)


@pytest.mark.parametrize("name", JUDGED, ids=short)
def test_who_sent_it_reads_what_denies_and_what_warns_and_nothing_else(name: str, sent: Mapping[str, Sent]) -> None:
    ended = sent[name].ended
    denied, warned = ended.found.get("deny", frozenset()), ended.found.get("warn", frozenset())
    assert {policy for policy in denied if f"[{policy}]" in ended.message} == denied
    # The mutating webhook, which cannot deny, warns of what would be denied.
    assert warned <= told(ended) <= denied | warned


@pytest.mark.parametrize("name", [name for name in JUDGED if not expected(case(name))], ids=short)
def test_where_nothing_is_found_it_is_stored_without_a_word_of_ours(name: str, sent: Mapping[str, Sent]) -> None:
    ended = sent[name].ended
    assert (ended.stored is not None, told(ended)) == (True, frozenset())


@pytest.mark.parametrize("name", PAIRS, ids=short)
def test_a_mutated_example_is_stored_as_the_fixed_one(name: str, sent: Mapping[str, Sent]) -> None:
    stored, fixed = (sent[each].ended.stored for each in (name, name.replace("/bad-", "/fixed-")))
    assert stored is not None
    assert fixed is not None
    assert as_stored(stored) == as_stored(fixed)


@pytest.mark.parametrize("name", PRUNED, ids=short)
def test_the_api_server_says_which_fields_it_drops(name: str, sent: Mapping[str, Sent]) -> None:
    assert any(warning.startswith("unknown field") for warning in sent[name].ended.warnings)


@pytest.mark.usefixtures("sent")
def test_the_api_server_keeps_every_audit_annotation(control_plane: ControlPlane) -> None:
    lost = re.compile(rf'Failed to set annotations\["(?!.*\.e2e\.).*gpugate\.dev/({"|".join(FOUND)})"')
    assert lost.findall(control_plane.log("kube-apiserver")) == []


def told(ended: Ended) -> frozenset[str]:
    """The policies that warnings name."""
    return frozenset(warning[1:].partition("]")[0] for warning in ended.warnings if warning.startswith("["))


def outcome(ended: Ended) -> tuple[object, ...]:
    return ended.code, ended.message, ended.warnings, ended.said
