from __future__ import annotations

import io
import json

from gpugate.tools.instance_types import compile_index, write

TABLE = """\
node.kubernetes.io/instance-type,kubernetes.io/arch,karpenter.k8s.aws/instance-gpu-count,allocatable:cpu,\
allocatable:memory,allocatable:nvidia.com/gpu,usd-per-hour:us-east-1:on-demand
g5.xlarge,amd64,1,3920m,14162Mi,1,1.006000
c7g.large,arm64,,1930m,3055Mi,,
g5.12xlarge,amd64,4,47810m,173400Mi,4,5.672000
""".splitlines()


def test_types_are_in_the_order_of_their_names() -> None:
    assert compile_index(TABLE)["names"] == ["c7g.large", "g5.12xlarge", "g5.xlarge"]


def test_a_label_is_a_set_of_types_for_each_value() -> None:
    assert compile_index(TABLE)["labels"] == {
        "karpenter.k8s.aws/instance-gpu-count": {"1": "4", "4": "2"},
        "kubernetes.io/arch": {"amd64": "6", "arm64": "1"},
    }


def test_amounts_are_in_millicores_mib_and_devices() -> None:
    assert compile_index(TABLE)["allocatable"] == {
        "cpu": {"1930": "1", "3920": "4", "47810": "2"},
        "memory": {"14162": "4", "173400": "2", "3055": "1"},
        "nvidia.com/gpu": {"1": "4", "4": "2"},
    }


def test_a_type_without_a_price_has_none() -> None:
    assert compile_index(TABLE)["prices"] == [None, 5.672, 1.006]


def test_the_order_of_rows_does_not_show_in_the_text() -> None:
    texts = []
    for rows in (TABLE[1:], TABLE[:0:-1]):
        out = io.StringIO()
        write(compile_index([TABLE[0], *rows]), out)
        texts.append(out.getvalue())
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["date"] == "2026-07-20"
