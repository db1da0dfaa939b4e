from __future__ import annotations

import pytest

from gpugate.webhook.audit.selection import Selection, SelectorError, parse_selector
from gpugate.webhook.report.located import ObjectName

LABELS = {"app": "web", "tier": "gpu"}


@pytest.mark.parametrize(
    ("selector", "taken"),
    [
        ("app=web", True),
        ("app==web", True),
        ("app = web", True),
        ("app!=web", False),
        ("app=other", False),
        ("zone!=a", True),
        ("app", True),
        ("zone", False),
        ("!zone", True),
        ("! app", False),
        ("app in (web, api)", True),
        ("app in (api)", False),
        ("app notin (api,db)", True),
        ("app=web,tier in (gpu,cpu),!zone", True),
        ("app=web,tier=cpu", False),
        ("app=", False),
        ("gpugate.dev/app=web", False),
    ],
)
def test_a_selector_means_what_it_means_to_kubectl(selector: str, taken: bool) -> None:  # noqa: FBT001 -- the answer
    assert Selection(labels=parse_selector(selector)).takes(ObjectName("v1", "Pod", "team", "a"), LABELS) is taken


@pytest.mark.parametrize("selector", ["app in web", "=web", "app=a b", ",", "app=web,", "a,(b)", "app>3", "app in (a"])
def test_what_is_no_selector_is_refused(selector: str) -> None:
    with pytest.raises(SelectorError, match="invalid label selector"):
        parse_selector(selector)


def test_a_namespace_is_in_itself() -> None:
    name = ObjectName("v1", "Namespace", "", "team")

    assert Selection(namespaces=frozenset({"team"})).takes(name, {})
    assert not Selection(excluded=frozenset({"team"})).takes(name, {})


def test_what_is_in_no_namespace_is_in_none_that_was_named() -> None:
    assert not Selection(namespaces=frozenset({"team"})).takes(ObjectName("karpenter.sh/v1", "NodePool", "", "gpu"), {})
