"""What a manifest says: as kubectl reads it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import assume, example, given
from oracle.process import Oracle, Refused
from oracle.yaml_exceptions import first_documents, is_read_otherwise, may_read, may_refuse
from oracle.yaml_strategies import documents, in_place, mistaken, plain, scalars

from gpugate.webhook.manifests import yaml_reader
from gpugate.webhook.manifests.problems import ReadError

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json


@given((plain | scalars).flatmap(in_place))
@example('!!binary "é"')
@example("!!binary aGk")
@example("!!int 1.0")
@example(".0_0")
@example("1e6: a")
@example("-0.0: a")
@example("1e-60: a")
@example("-.Inf: a")
@example("18446744073709551615: a")
@example("4.205948710432355e+16")
@example("!!merge <<: {a: 1}")
def test_a_scalar_means_the_same(oracle: Oracle, text: str) -> None:
    compare(oracle, text)


@given(documents())
@example("[what?]")
@example("{a: b?c}")
@example("a: what?\nb: [c]\nd: what?\n")
@example("- &a 1\n- &a {b: *a}\n")
@example("- &a [&a 1]\n- *a\n")
@example("- &a 1e6\n- {*a : 1}\n")
def test_a_document_means_the_same(oracle: Oracle, text: str) -> None:
    compare(oracle, text)


@given(mistaken())
def test_a_document_with_mistakes_means_the_same_or_nothing(oracle: Oracle, text: str) -> None:
    compare(oracle, text)


def compare(oracle: Oracle, text: str) -> None:
    assume(not is_read_otherwise(text))
    theirs, refusal = by_kubectl(oracle, text)
    ours, complaint = by_us(text)
    if refusal:
        assert complaint or may_read(text, refusal), (refusal, ours)
    elif complaint:
        same = any(by_us(document) == (theirs, "") for document in first_documents(text))
        assert same or may_refuse(text, complaint), (complaint, theirs)
    else:
        # Of keys that are different in YAML and one in JSON, such as 1 and "1", kubectl keeps any.
        assert ours == theirs or any(by_kubectl(oracle, text) == (ours, "") for _ in range(100))


def by_kubectl(oracle: Oracle, text: str) -> tuple[str, str]:
    """Return the value as text, or why there is none."""
    try:
        return written(as_the_api_server(oracle.ask("yaml", text))), ""
    except Refused as refused:
        return "", str(refused)


def by_us(text: str) -> tuple[str, str]:
    """Return the value as text, or why there is none."""
    try:
        return written(yaml_reader.read(text).value), ""
    except ReadError as error:
        return "", error.message


def as_the_api_server(value: Json) -> Json:
    """An integer beyond 64 bits becomes a float when the API server decodes JSON."""
    if isinstance(value, dict):
        return {key: as_the_api_server(member) for key, member in value.items()}
    if isinstance(value, list):
        return [as_the_api_server(member) for member in value]
    return float(value) if type(value) is int and not -(2**63) <= value < 2**63 else value


def written(value: Json) -> str:
    """Write a value so that 1, 1.0 and true are three."""
    return json.dumps(value, sort_keys=True)
