"""No policy costs more than in proportion to the object; `tests/slow/test_growth.py` tries larger ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from growth import Case, superlinear
from library_examples import library_example

import gpugate.policies
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine import bounds
from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.objects import POD, GroupVersionKind, Operation, Request
from gpugate.policies.sdk.policy import AnyContext, Policy, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

ROOT = Path(gpugate.policies.__file__).parent
# Of the smaller size; the larger is four times as much.
COUNT = 100
# Below this, in CPU seconds, what is measured is the clock.
FLOOR = 0.006


@pytest.fixture(autouse=True)
def unbounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "too_large", lambda *_: ())
    monkeypatch.setattr(bounds, "too_many_templates", lambda *_: ())


def examples() -> Iterator[Case]:
    for file in sorted(ROOT.glob("*/examples/*/*.yaml")):
        example = library_example(file)
        config = example.config if "PolicyConfig" in file.read_text() else None
        yield Case(f"{file.parent.name}/{file.name}", example.request, example.context, example.complete, config)


def test_the_library_is_linear() -> None:
    found = superlinear(CATALOG, examples(), count=COUNT, floor=FLOOR)
    assert list(map(str, found)) == []


@validates(POD)
def each_with_each(pod: Field, _: AnyContext) -> Iterator[Violation]:
    for container in pod["spec", "containers"]:
        for claim in pod["spec", "resourceClaims"]:
            if container["name"].text == claim["name"].text:
                yield Violation(claim.path, "has the name of a container")


@validates(POD)
def each_by_name(pod: Field, _: AnyContext) -> Iterator[Violation]:
    names = {container["name"].text for container in pod["spec", "containers"]}
    for claim in pod["spec", "resourceClaims"]:
        if claim["name"].text in names:
            yield Violation(claim.path, "has the name of a container")


@pytest.mark.parametrize(
    ("check", "found"),
    [
        pytest.param(each_with_each, True, id="a-product"),
        pytest.param(each_by_name, False, id="a-set"),
    ],
)
def test_a_product_of_two_lists_is_found_in_anybodys_policy(
    check: Any,
    found: bool,  # noqa: FBT001 -- a table's column
) -> None:
    spec = {"containers": [{"name": "a"}], "resourceClaims": [{"name": "b", "resourceClaimName": "c"}]}
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    case = Case("a Pod", Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, pod, name="a"))
    policy = Policy("pods/own", "", (check,))
    # A product shows at small sizes, and takes seconds at others.
    assert any(superlinear((policy,), [case], count=COUNT // 4, floor=FLOOR / 16)) is found
