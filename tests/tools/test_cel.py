"""Concerns in the words of the API server; that both mean the same is tried on a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.sdk.concerns import (
    EVERY_OBJECT,
    AllOf,
    AnyOf,
    Concern,
    Each,
    Flag,
    Key,
    Listed,
    Not,
    SentBy,
    Text,
    any_of,
)
from gpugate.policies.sdk.platform import Accelerators, Platform, Taint
from gpugate.webhook.registration.match_conditions import alternatives

if TYPE_CHECKING:
    from collections.abc import Iterator

PLATFORM = Platform(taints={"a.b/*": (Taint(key="own"),)}, accelerators=Accelerators(resources=("a.b/*",)))

WRITTEN: dict[str, tuple[Concern, str]] = {
    "a string": (Text("spec.a", ("x",)), "object.?spec.?a.orValue('') == 'x'"),
    "one of several": (Text("spec.a", ("x", "y")), "object.?spec.?a.orValue('') in ['x', 'y']"),
    "how it starts": (Text("a", ("x*",)), "object.?a.optMap(a, size(a) > 64 || a.startsWith('x')).orValue(false)"),
    "how a long one starts": (
        Text("a", ("x*",), most=99),
        "object.?a.optMap(a, size(a) > 99 || a.startsWith('x')).orValue(false)",
    ),
    "how it ends": (Text("a", ("*x",)), "object.?a.optMap(a, size(a) > 64 || a.endsWith('x')).orValue(false)"),
    "what it holds": (Text("a", ("*x*",)), "object.?a.optMap(a, size(a) > 64 || a.contains('x')).orValue(false)"),
    "both ends": (
        Text("a", ("x.*y",)),
        "object.?a.optMap(a, size(a) > 64 || (a.startsWith('x.') && a.endsWith('y') && size(a) >= 3)).orValue(false)",
    ),
    "several parts": (
        Text("a", ("x.*y*z",)),
        r"object.?a.optMap(a, size(a) > 64 || a.matches('^(?s:x\\..*y.*z)$')).orValue(false)",
    ),
    "what may be missing": (
        Text("a", ("", "x*")),
        "object.?a.optMap(a, a == '' || size(a) > 64 || a.startsWith('x')).orValue(true)",
    ),
    "quotes": (Text("a", ("it's \"x\\",)), "object.?a.orValue('') == 'it\\'s \"x\\\\'"),
    "a flag": (Flag("a.b"), "object.?a.?b.orValue(false)"),
    "a key": (Key("a", ("x", "y")), "object.?a.optMap(a, 'x' in a || 'y' in a).orValue(false)"),
    "how a key starts": (
        Key("a", ("x", "y*")),
        (
            "object.?a.optMap(a, 'x' in a || size(a) > 48 || a.exists(b, size(b) > 64 || b.startsWith('y')))"
            ".orValue(false)"
        ),
    ),
    "any key": (Key("a"), "size(object.?a.orValue({})) > 0"),
    "any element": (Each("a", EVERY_OBJECT), "object.?a.optMap(a, a != null && size(a) > 0).orValue(false)"),
    "an element": (
        Each("a", Flag("b")),
        "object.?a.optMap(a, a != null && (size(a) > 32 || a.exists(b, b.?b.orValue(false)))).orValue(false)",
    ),
    "an element of an element": (
        Each("a", Each("b", Flag("c"))),
        (
            "object.?a.optMap(a, a != null && (size(a) > 32 || a.map(b, size(b.?b.orValue([]))).sum() > 256"
            " || a.exists(b, b.?b.optMap(c, c.exists(d, d.?c.orValue(false))).orValue(false)))).orValue(false)"
        ),
    ),
    "no element": (
        ~Each("a", Flag("b")),
        "!(object.?a.optMap(a, a != null && (size(a) <= 32 && (a.exists(b, b.?b.orValue(false))))).orValue(false))",
    ),
    "who sends it": (
        SentBy("a:*"),
        "(size(request.userInfo.username) > 64 || request.userInfo.username.startsWith('a:'))",
    ),
    "both, the cheap one first": (
        Each("a", Flag("b")) & Flag("c"),
        (
            "(object.?c.orValue(false)"
            " && object.?a.optMap(a, a != null && (size(a) > 32 || a.exists(b, b.?b.orValue(false)))).orValue(false))"
        ),
    ),
    "one of two": (Flag("a") | Flag("b"), "object.?a.orValue(false) ||\nobject.?b.orValue(false)"),
    "one of two in the same list": (
        Each("a", Flag("b")) | Each("a", Flag("c")),
        "object.?a.optMap(a, a != null && (size(a) > 32 || a.exists(b, (b.?b.orValue(false) || b.?c.orValue(false))))).orValue(false)",
    ),
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
    assert "c.matches('^(?s: |own)$')" in taints
    assert r"b.matches('^(?s: |a\\.b/.*)$')" in resources


def test_every_concern_of_the_catalogue_has_words() -> None:
    for handler in (handler for policy in CATALOG for handler in policy.handlers):
        assert alternatives(handler.concerns, PLATFORM)


def test_a_concern_reads_of_a_custom_resource_only_what_the_api_server_has_decoded() -> None:
    """Only the types of metadata are sure there, and a field of another type makes a condition fail."""
    custom = [
        (policy.id, path)
        for policy in CATALOG
        for handler in policy.handlers
        if any("." in kind.group and not kind.group.endswith(".k8s.io") for kind in handler.kinds)
        for path in paths(handler.concerns)
        if not path.startswith("metadata.")
    ]
    assert custom == []


def paths(concern: Concern) -> Iterator[str]:
    """The paths that a concern reads in an object."""
    match concern:
        case AnyOf(parts) | AllOf(parts):
            for part in parts:
                yield from paths(part)
        case Not(part):
            yield from paths(part)
        case Each(path, _) | Key(path, _) | Text(path, _) | Flag(path):
            yield path


def test_what_has_no_words_is_a_mistake_that_says_so() -> None:
    with pytest.raises(TypeError, match="Concern has no CEL expression"):
        alternatives(Concern(), PLATFORM)
