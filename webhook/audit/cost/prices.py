"""Prices of node hours: on-demand list prices of the catalogue, or those of a user's table."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.policies.engine.config import GpugateError, near_misses
from gpugate.policies.sdk.quantity import type_name
from gpugate.webhook.manifests.bounded_file import MAX_BYTES
from gpugate.webhook.manifests.documents import Document, Positions, encoding, read_bytes
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.field import Json

PLACE: Final = "us-east-1"


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of nodes by instance type, in USD an hour.

    Attributes:
        catalogue: EC2's types, with what they cost on demand in `PLACE`.
        own: the user's prices, which win; a type may be one that the catalogue does not know.
        source: the name of the user's table; empty where there is none.
    """

    catalogue: InstanceTypes
    own: Mapping[str, Fraction] = field(default_factory=dict)
    source: str = ""

    def of(self, instance_type: str) -> Fraction | None:
        """Return the price of a type; None if it is unknown."""
        if instance_type in self.own:
            return self.own[instance_type]
        position = self.catalogue.positions.get(instance_type)
        price = None if position is None else self.catalogue.prices[position]
        # By way of its text, so that 21.957642 is exactly that and sums do not depend on their order.
        return None if price is None else Fraction(str(price))

    def is_listed(self, instance_type: str) -> bool:
        """Tell whether the price of a type is the catalogue's, which is that of one place."""
        return instance_type not in self.own

    def __str__(self) -> str:
        listed = f"on-demand list prices, {PLACE}, {self.catalogue.date}"
        if not self.source:
            return listed
        count = len(self.own)
        return f"{self.source} for {count} instance type{'' if count == 1 else 's'}; for the others {listed}"


_COLUMNS: Final = ("type", "usd_per_hour")
_EXAMPLE: Final = "write a list of `- {type: p5.48xlarge, usd_per_hour: 40.5}`"
_DECIMAL: Final = re.compile(r"\d{1,9}(?:\.\d{1,12})?")
_MOST_ERRORS: Final = 20


class PriceTableError(GpugateError):
    """A table of prices is refused; the text has a line for each mistake, which begins with file and line."""


class _Row(NamedTuple):
    line: int
    type: str
    price: str
    """As it is written; what is no number is refused later."""


@dataclass(frozen=True, slots=True)
class PriceTable:
    """A user's prices in USD an hour by instance type, and sentences about types that are not in the catalog."""

    source: str
    prices: Mapping[str, Fraction]
    remarks: tuple[str, ...] = ()


def read_price_table(path: Path, known: Iterable[str]) -> PriceTable:
    """Read a table; a name that ends in `.csv` is CSV, others are YAML or JSON.

    Args:
        path: the file.
        known: the types that the catalogue or the cluster has. Others are kept, because a platform may have machines of
            its own, and remarked upon, because they may be misspelt.

    Raises:
        PriceTableError: the file cannot be read; a key, a column or a price is wrong; a type stands twice.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise PriceTableError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    if len(data) > MAX_BYTES:
        raise PriceTableError(f"{path}: larger than {MAX_BYTES >> 20} MiB")
    mistakes: list[str] = []
    rows = tuple((_csv if path.suffix.lower() == ".csv" else _yaml)(str(path), data, mistakes))
    prices = _prices(str(path), rows, mistakes)
    if not mistakes and not prices:
        mistakes.append(f"{path}: contains no price: {_EXAMPLE}, or CSV with the columns {','.join(_COLUMNS)}")
    if mistakes:
        reported = mistakes[:_MOST_ERRORS]
        more = [f"{path}: and {len(mistakes) - len(reported)} more"] if len(mistakes) > len(reported) else []
        raise PriceTableError("\n".join(reported + more))
    return PriceTable(str(path), prices, tuple(_unknown(str(path), rows, frozenset(known))))


def _prices(source: str, rows: Iterable[_Row], mistakes: list[str]) -> dict[str, Fraction]:
    prices: dict[str, Fraction] = {}
    lines: dict[str, int] = {}
    for row in rows:
        if not row.type:
            mistakes.append(f"{source}:{row.line}: missing key `type`")
        elif row.type in lines:
            mistakes.append(f"{source}:{row.line}: {row.type} already has a price on line {lines[row.type]}")
        elif not _DECIMAL.fullmatch(row.price) or not Fraction(row.price):
            written = row.price[:40] or "nothing"
            mistakes.append(
                f"{source}:{row.line}: invalid price of {row.type}: {written}: write USD per hour as a number above 0, "
                "such as 40.5"
            )
        else:
            prices[row.type] = Fraction(row.price)
        lines.setdefault(row.type, row.line)
    return prices


def _unknown(source: str, rows: Iterable[_Row], known: frozenset[str]) -> Iterator[str]:
    for row in rows:
        if row.type not in known:
            near = near_misses(row.type, known)
            meant = f"did you mean {near[0]}?" if near else "it is used for nodes with this label"
            yield f"{source}:{row.line}: unknown instance type {row.type}; {meant}"


def _csv(source: str, data: bytes, mistakes: list[str]) -> Iterator[_Row]:
    try:
        text = data.decode(encoding(data))
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        header = [name.strip() for name in next(reader, [])]
        if sorted(header) != sorted(_COLUMNS):
            mistakes.append(f"{source}:1: the columns are {','.join(header)[:80]}: write {','.join(_COLUMNS)}")
            return
        for cells in reader:
            row = [cell.strip() for cell in cells]
            if not any(row) or row[0].startswith("#"):
                continue
            if len(row) != len(header):
                mistakes.append(f"{source}:{reader.line_num}: has {len(row)} cells: write {','.join(header)}")
                continue
            named = dict(zip(header, row, strict=True))
            yield _Row(reader.line_num, named["type"], named["usd_per_hour"])
    except UnicodeDecodeError as error:
        mistakes.append(f"{source}: not UTF-8 text at byte {error.start}: save it as UTF-8")
    except csv.Error as error:
        mistakes.append(f"{source}: not CSV: {error}")


def _yaml(source: str, data: bytes, mistakes: list[str]) -> Iterator[_Row]:
    for document in read_bytes(source, data):
        if isinstance(document, Problem):
            mistakes.append(f"{source}:{document.line}: {document.message}: {document.remedy}")
        elif isinstance(document.value, list):
            places = Positions(document)
            for index, entry in enumerate(document.value):
                yield from _entry(source, places.find((index,)).line, entry, mistakes)
        else:
            mistakes.append(f"{source}:{_first_line(document)}: is {type_name(document.value)}: {_EXAMPLE}")


def _first_line(document: Document) -> int:
    return Positions(document).find(()).line


def _entry(source: str, line: int, entry: Json, mistakes: list[str]) -> Iterator[_Row]:
    if not isinstance(entry, dict):
        mistakes.append(f"{source}:{line}: is {type_name(entry)}: {_EXAMPLE}")
        return
    for key in entry.keys() - set(_COLUMNS):
        near = near_misses(key, _COLUMNS)
        meant = f"; did you mean `{near[0]}`?" if near else ""
        mistakes.append(f"{source}:{line}: unknown key `{key[:40]}`{meant}")
    missing = [key for key in _COLUMNS if key not in entry]
    if missing:
        mistakes.append(f"{source}:{line}: missing key `{'` and `'.join(missing)}`")
    if not isinstance(entry.get("type", ""), str):
        mistakes.append(f"{source}:{line}: the type is {type_name(entry['type'])}: put it in quotes")
    elif entry.keys() == set(_COLUMNS):
        yield _Row(line, str(entry["type"]).strip(), _written(entry["usd_per_hour"]))


def _written(value: Json) -> str:
    """Write a number without an exponent; what is none, as what it is, which no price looks like."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return type_name(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return f"{value:.12f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
