"""The API server's path, `gpugate check` and `gpugate review` come to one verdict on every example."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from library.cases import FILES, case
from library.command_line import BY_ITSELF, by_check, by_review
from library.expectations import PRUNED, REFUSED, WITHOUT_STATUS
from library.run import library_run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cluster.control_plane import ControlPlane
    from cluster.served_webhook import ServedWebhook
    from library.run import Sent

PLACEHOLDER = "nodeclasses/unexpanded-placeholder"
# Those that reach the policies as they are written.
examples = pytest.mark.parametrize(
    "name",
    [name for name in FILES if name not in {*REFUSED, *PRUNED, *WITHOUT_STATUS}],
    ids=lambda name: name.replace("/examples", ""),
)


@pytest.fixture(scope="module")
def sent(control_plane: ControlPlane, webhook: ServedWebhook) -> Mapping[str, Sent]:
    return library_run(control_plane, webhook)


@examples
def test_check_of_all_that_the_cluster_holds(name: str, sent: Mapping[str, Sent], tmp_path: Path) -> None:
    checked, found = by_check(case(name), tmp_path), sent[name].ended.found
    if checked.pop("template", None):
        # A file may be a template, so its placeholders are unknown values; in an object they are denied.
        assert PLACEHOLDER in found["deny"]
        assert {word: policies - found.get(word, frozenset()) for word, policies in checked.items()} == dict.fromkeys(
            checked, frozenset()
        )
    else:
        assert checked == found


@examples
def test_review_by_policies_that_look_at_the_object_alone(name: str, sent: Mapping[str, Sent], tmp_path: Path) -> None:
    reviewed = by_review(case(name), tmp_path)
    ended = {word: policies for word, policies in sent[name].ended.found.items() if word != "mutate"}
    assert by_itself(reviewed) == by_itself(ended)


def by_itself(found: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    return {word: policies & BY_ITSELF for word, policies in found.items() if policies & BY_ITSELF}
