from __future__ import annotations

import pytest
from library_examples import read_example

from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.sdk.objects import Operation
from gpugate.webhook.testing.cases import CaseFileError
from gpugate.webhook.testing.expect_comments import Expected

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME}
"""


def documents(*parts: str) -> str:
    return "---\n".join(parts)


def test_the_last_document_is_judged_and_the_others_have_a_role() -> None:
    other, before = POD.replace("NAME", "other"), POD.replace("{", "{labels: {is: old}, ")
    text = documents("# What it shows.\n# context\n" + other, "# old\n" + before, POD)
    example = read_example("x.yaml", text)
    assert example.request.name == "NAME"
    assert [request.name for request in example.context] == ["other"]
    assert example.request.operation is Operation.UPDATE
    assert example.request.old_object is not None
    assert example.request.old_object["metadata"]["labels"] == {"is": "old"}
    assert not example.complete


def test_context_may_be_all_there_is() -> None:
    assert read_example("x.yaml", documents("# complete context\n" + POD, POD)).complete


def test_its_title_is_the_comment_on_the_first_line() -> None:
    assert read_example("x.yaml", "# A Pod that does nothing.\n" + POD).title == "A Pod that does nothing."


def test_a_policy_config_configures_it() -> None:
    config = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: audit\n"
    assert read_example("x.yaml", documents(config, POD)).config == PolicyConfig(mode="audit")


def test_expectations_stand_at_the_end_of_lines() -> None:
    text = POD.replace("kind: Pod", "kind: Pod  # expect: pods/a, pods/b")
    assert read_example("x.yaml", text).expected == {Expected(2, "pods/a"), Expected(2, "pods/b")}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# context\n" + POD, "no object to evaluate"),
        (documents(POD, POD), "1 documents beside the last have no role"),
        ("a: [\n", r"x.yaml:\d+:\d+: "),
        ("a: b\n", "x.yaml:1:1: missing apiVersion"),
    ],
)
def test_what_is_no_example_is_refused(text: str, says: str) -> None:
    with pytest.raises(CaseFileError, match=says):
        read_example("x.yaml", text)
