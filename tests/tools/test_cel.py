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
    "how it starts": (Text("a", ("x*",)), "has(object.a) && (size(object.a) > 64 || object.a.startsWith('x'))"),
    "how a long one starts": (
        Text("a", ("x*",), most=99),
        "has(object.a) && (size(object.a) > 99 || object.a.startsWith('x'))",
    ),
    "how it ends": (Text("a", ("*x",)), "has(object.a) && (size(object.a) > 64 || object.a.endsWith('x'))"),
    "what it holds": (Text("a", ("*x*",)), "has(object.a) && (size(object.a) > 64 || object.a.contains('x'))"),
    "both ends": (
        Text("a", ("x.*y",)),
        (
            "has(object.a) && (size(object.a) > 64"
            " || object.a.startsWith('x.') && object.a.endsWith('y') && size(object.a) >= 3)"
        ),
    ),
    "several parts": (
        Text("a", ("x.*y*z",)),
        r"has(object.a) && (size(object.a) > 64 || object.a.matches('^(?s:x\\..*y.*z)$'))",
    ),
    "what may be missing": (
        Text("a", ("", "x*")),
        "!(has(object.a)) || object.a == '' || size(object.a) > 64 || object.a.startsWith('x')",
    ),
    "quotes": (Text("a", ("it's \"x\\",)), "object.?a.orValue('') == 'it\\'s \"x\\\\'"),
    "a flag": (Flag("a.b"), "has(object.a) && has(object.a.b) && object.a.b"),
    "a key": (Key("a", ("x", "y")), "has(object.a) && ('x' in object.a || 'y' in object.a)"),
    "how a key starts": (
        Key("a", ("x", "y*")),
        (
            "has(object.a) && (size(object.a) > 48"
            " || size(object.a.filter(a, a == 'x' || size(a) > 64 || a.startsWith('y'))) > 0)"
        ),
    ),
    "no key that starts so": (
        ~Key("a", ("x", "y*")),
        (
            "!(has(object.a) && ('x' in object.a"
            " || size(object.a) <= 48 && size(object.a.filter(a, size(a) <= 64 && a.startsWith('y'))) > 0))"
        ),
    ),
    "any key": (Key("a"), "has(object.a) && size(object.a) > 0"),
    "any element": (Each("a", EVERY_OBJECT), "has(object.a) && object.a != null && size(object.a) > 0"),
    "an element": (
        Each("a", Flag("b")),
        ("has(object.a) && object.a != null && (size(object.a) > 32 || size(object.a.filter(a, has(a.b) && a.b)) > 0)"),
    ),
    "an element of an element, counted where one of a few has many": (
        Each("a", Each("b", Flag("c"))),
        (
            "has(object.a) && object.a != null && (size(object.a) > 32"
            " || size(object.a) > 4 && object.a.map(a, size(a.?b.orValue([]))).sum() > 256"
            " || size(object.a.filter(a, has(a.b) && (size(a.b) > 64"
            " && object.a.map(b, size(b.?b.orValue([]))).sum() > 256"
            " || size(a.b.filter(b, has(b.c) && b.c)) > 0))) > 0)"
        ),
    ),
    "an element without an element of a kind, counted first": (
        Each("a", ~Each("b", Flag("c"))),
        (
            "has(object.a) && object.a != null && (size(object.a) > 32"
            " || object.a.map(a, size(a.?b.orValue([]))).sum() > 256"
            " || size(object.a.filter(a, !(has(a.b) && size(a.b.filter(b, has(b.c) && b.c)) > 0))) > 0)"
        ),
    ),
    "no element": (
        ~Each("a", Flag("b")),
        (
            "!(has(object.a) && object.a != null && size(object.a) <= 32"
            " && size(object.a.filter(a, has(a.b) && a.b)) > 0)"
        ),
    ),
    "elements that differ after a name": (
        Each("a", (Text("b", ("x",)) & Flag("c")) | Text("b", ("y",))),
        (
            "has(object.a) && object.a != null && (size(object.a) > 32"
            " || size(object.a.filter(a, a.?b.orValue('') in ['x', 'y']"
            " && (a.?b.orValue('') == 'x' && has(a.c) && a.c || a.?b.orValue('') == 'y'))) > 0)"
        ),
    ),
    "who sends it": (
        SentBy("a:*"),
        "size(request.userInfo.username) > 64 || request.userInfo.username.startsWith('a:')",
    ),
    "both, the cheap one first": (
        Each("a", Flag("b")) & Flag("c"),
        (
            "has(object.c) && object.c && has(object.a) && object.a != null"
            " && (size(object.a) > 32 || size(object.a.filter(a, has(a.b) && a.b)) > 0)"
        ),
    ),
    "one of two": (Flag("a") | Flag("b"), "has(object.a) && object.a ||\nhas(object.b) && object.b"),
    "one of two in the same object": (
        Flag("a.b.c") | Flag("a.b.d") | Flag("e"),
        (
            "has(object.a) && has(object.a.b) && (has(object.a.b.c) && object.a.b.c ||\n"
            "has(object.a.b.d) && object.a.b.d) ||\n"
            "has(object.e) && object.e"
        ),
    ),
    "one of two in the same list": (
        Each("a", Flag("b")) | Each("a", Flag("c")),
        (
            "has(object.a) && object.a != null"
            " && (size(object.a) > 32 || size(object.a.filter(a, has(a.b) && a.b || has(a.c) && a.c)) > 0)"
        ),
    ),
    "not": (~Flag("a"), "!(has(object.a) && object.a)"),
    "nothing": (any_of(), "false"),
}


@pytest.mark.parametrize(("concern", "written"), WRITTEN.values(), ids=WRITTEN)
def test_a_concern_is_written(concern: Concern, written: str) -> None:
    assert alternatives(concern, PLATFORM) == written


def test_the_platform_has_its_part() -> None:
    taints = alternatives(Each("spec.tolerations", Text("key", Listed.GPU_TAINTS)), PLATFORM)
    resources = alternatives(Key("limits", Listed.ACCELERATOR_RESOURCES), PLATFORM)

    assert "'nvidia.com/gpu'" in taints
    assert "a.key.matches('^(?s: |own)$')" in taints
    assert r"a.matches('^(?s: |a\\.b/.*)$')" in resources


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
