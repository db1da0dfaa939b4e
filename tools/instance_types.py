"""Compiles a table of EC2 instance types into the index that policies match requirements against.

Run as `python -m gpugate.tools.instance_types TABLE.csv > policies/data/instance_types.json`. The table has a
row per type: its name, its labels by key, `allocatable:RESOURCE` as quantities, and its price per hour. An empty cell
means that the type does not have the label, resource or price.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import defaultdict
from typing import IO, TYPE_CHECKING, Final

from gpugate.policies.sdk import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpugate.policies.sdk.field import Json

SOURCE: Final = "aws/karpenter-provider-aws v1.14.1 instance-types reference + pricing (us-east-1 on-demand)"
VERSION: Final = "v1.14.1"
DATE: Final = "2026-07-20"

_NAME = "node.kubernetes.io/instance-type"
_ALLOCATABLE = "allocatable:"
_PRICE = "usd-per-hour:us-east-1:on-demand"
# The unit each amount is kept in, as a factor; a resource that is not listed is counted whole.
_UNITS = {"cpu": 1000, "memory": 2**-20}


def compile_index(table: Iterable[str]) -> dict[str, Json]:
    """Turn the lines of a CSV table into the index.

    Bitsets are hexadecimal; bit n is the n-th name. Amounts are millicores, MiB or whole devices.
    """
    rows = sorted(csv.DictReader(table), key=lambda row: row[_NAME])
    labels: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    allocatable: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for position, row in enumerate(rows):
        for column, value in row.items():
            if not value or column in {_NAME, _PRICE}:
                continue
            resource = column.removeprefix(_ALLOCATABLE)
            if resource == column:
                labels[column][value] |= 1 << position
            else:
                amount = int(quantity.parse(value) * _UNITS.get(resource, 1))
                allocatable[resource][str(amount)] |= 1 << position
    return {
        "source": SOURCE,
        "version": VERSION,
        "date": DATE,
        "names": [row[_NAME] for row in rows],
        "prices": [float(row[_PRICE]) if row[_PRICE] else None for row in rows],
        "labels": _hexadecimal(labels),
        "allocatable": _hexadecimal(allocatable),
    }


def _hexadecimal(index: Mapping[str, Mapping[str, int]]) -> dict[str, Json]:
    return {key: {value: f"{index[key][value]:x}" for value in sorted(index[key])} for key in sorted(index)}


def write(index: dict[str, Json], out: IO[str]) -> None:
    """Write an index as text, one value on a line, the same for the same table."""
    json.dump(index, out, indent=1)
    out.write("\n")


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8", newline="") as lines:  # noqa: PTH123 -- one file, read once
        write(compile_index(lines), sys.stdout)
