from __future__ import annotations

from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.check.run import apart


def fact(name: str, namespace: str = "default") -> Request:
    return Request(
        kind=GroupVersionKind("", "v1", "Pod"), operation=Operation.CREATE, object={}, name=name, namespace=namespace
    )


def test_without_renderings_all_files_share_everything() -> None:
    one, two = fact("a"), fact("a")

    assert apart([(0, [one]), (1, [two])], {}) == ([one, two], {})


def test_renderings_of_one_release_know_nothing_of_each_other() -> None:
    plain, staging, prod = fact("plain"), fact("web"), fact("other")

    shared, own = apart([(0, [plain]), (1, [staging]), (2, [prod])], {1: "chart", 2: "chart"})

    assert own == {1: [plain, staging], 2: [plain, prod]}
    assert shared == [plain, staging]


def test_renderings_that_make_the_same_object_know_nothing_of_each_other() -> None:
    dev, prod = fact("web"), fact("web")

    shared, own = apart([(1, [dev]), (2, [prod])], {1: "dev", 2: "prod"})

    assert (shared, own) == ([dev], {1: [dev], 2: [prod]})


def test_renderings_that_can_be_together_are_facts_for_each_other() -> None:
    dev, prod = fact("web", "dev"), fact("web", "prod")

    assert apart([(1, [dev]), (2, [prod])], {1: "dev", 2: "prod"}) == ([dev, prod], {})
