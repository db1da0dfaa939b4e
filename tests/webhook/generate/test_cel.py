"""Concerns in the words of the API server; that both mean the same is tried on a real one."""

from __future__ import annotations

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.sdk.concerns import EVERY_OBJECT, Concern, Each, Flag, Key, Listed, SentBy, Text, any_of
from gpugate.policies.sdk.platform import Accelerators, Platform, Taint
from gpugate.webhook.generate.cel import alternatives

PLATFORM = Platform(taints={"a.b/*": (Taint(key="own"),)}, accelerators=Accelerators(resources=("a.b/*",)))

WRITTEN: dict[str, tuple[Concern, str]] = {
    "a string": (Text("spec.a", ("x",)), "object.?spec.?a.orValue('') == 'x'"),
    "one of several": (Text("spec.a", ("x", "y")), "object.?spec.?a.orValue('') in ['x', 'y']"),
    "how it starts": (Text("a", ("x*",)), "object.?a.orValue('').startsWith('x')"),
    "how it ends": (Text("a", ("*x",)), "object.?a.orValue('').endsWith('x')"),
    "what it holds": (Text("a", ("*x*",)), "object.?a.orValue('').contains('x')"),
    "both ends": (Text("a", ("x.*y",)), r"object.?a.orValue('').matches('^(?s:x\\..*y)$')"),
    "what no name holds": (Text("a", ("x y*z",)), "object.?a.orValue('').matches('^(?s:x y.*z)$')"),
    "quotes": (Text("a", ("it's \"x\\",)), "object.?a.orValue('') == 'it\\'s \"x\\\\'"),
    "a flag": (Flag("a.b"), "object.?a.?b.orValue(false)"),
    "a key": (Key("a", ("x",)), "object.?a.orValue({}).exists(a, a == 'x')"),
    "any key": (Key("a"), "object.?a.orValue({}).exists(a, true)"),
    "any element": (Each("a", EVERY_OBJECT), "object.?a.orValue([]).exists(a, true)"),
    "an element of an element": (
        Each("a", Each("b", Flag("c"))),
        "object.?a.orValue([]).exists(a, a.?b.orValue([]).exists(b, b.?c.orValue(false)))",
    ),
    "who sends it": (SentBy("a:*"), "request.userInfo.username.startsWith('a:')"),
    "both": (Flag("a") & Flag("b"), "(object.?a.orValue(false) && object.?b.orValue(false))"),
    "one of two": (Flag("a") | Flag("b"), "object.?a.orValue(false) ||\nobject.?b.orValue(false)"),
    "not": (~Flag("a"), "!(object.?a.orValue(false))"),
    "nothing": (any_of(), ""),
}


@pytest.mark.parametrize(("concern", "written"), WRITTEN.values(), ids=WRITTEN)
def test_a_concern_is_written(concern: Concern, written: str) -> None:
    assert alternatives(concern, PLATFORM) == written


def test_the_platform_has_its_part() -> None:
    taints = alternatives(Each("spec.tolerations", Text("key", Listed.GPU_TAINTS)), PLATFORM)
    resources = alternatives(Key("limits", Listed.ACCELERATOR_RESOURCES), PLATFORM)

    assert "'nvidia.com/gpu'" in taints
    assert "a.?key.orValue('').matches('^(?s: |own)$')" in taints
    assert r"a.matches('^(?s: |a\\.b/.*)$')" in resources


def test_every_concern_of_the_catalogue_has_words() -> None:
    for handler in (handler for policy in CATALOG for handler in policy.handlers):
        assert alternatives(handler.concerns, PLATFORM)


def test_what_has_no_words_is_a_mistake_that_says_so() -> None:
    with pytest.raises(TypeError, match="Concern has no words in CEL"):
        alternatives(Concern(), PLATFORM)
