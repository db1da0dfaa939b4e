from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from clusters import list_prices
from hypothesis import given
from hypothesis import strategies as st

from gpugate.webhook.audit.cost.prices import CAPACITIES, Prices, PriceTableError, read_price_table

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = list_prices().catalogue.names
CSV = "type,usd_per_hour\np5.48xlarge,40.5\ng6.xlarge,0.5\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prices.csv", CSV),
        ("prices.CSV", "\ufeff" + CSV),
        ("prices.csv", "usd_per_hour, type\r\n40.5,p5.48xlarge\r\n\r\n# our contract\r\n 0.50 , g6.xlarge\r\n"),
        ("prices.yaml", "- {type: p5.48xlarge, usd_per_hour: 40.5}\n- type: g6.xlarge\n  usd_per_hour: 0.5\n"),
        ("prices.json", '[{"type": "p5.48xlarge", "usd_per_hour": 40.5}, {"type": "g6.xlarge", "usd_per_hour": 0.50}]'),
    ],
)
def test_a_table_is_csv_or_yaml(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")

    table = read_price_table(tmp_path / name, KNOWN)

    assert table.prices == {"p5.48xlarge": Fraction("40.5"), "g6.xlarge": Fraction("0.5")}
    assert not table.remarks


def refusal(tmp_path: Path, name: str, text: str) -> str:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(PriceTableError) as refused:
        read_price_table(tmp_path / name, KNOWN)
    return str(refused.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("typ,usd_per_hour\np5.48xlarge,1\n", "p.csv:1: the columns are typ,usd_per_hour: write type,usd_per_hour"),
        ("type,usd_per_hour\ng6.xlarge,1\np5.48xlarge,-1\n", "p.csv:3: invalid price of p5.48xlarge: -1: write USD per hour"),
        ("type,usd_per_hour\ng6.xlarge,0\n", "p.csv:2: invalid price of g6.xlarge: 0:"),
        ("type,usd_per_hour\ng6.xlarge,nan\n", "p.csv:2: invalid price of g6.xlarge: nan:"),
        ("type,usd_per_hour\ng6.xlarge,inf\n", "p.csv:2: invalid price of g6.xlarge: inf:"),
        ("type,usd_per_hour\ng6.xlarge,$5\n", "p.csv:2: invalid price of g6.xlarge: $5:"),
        ("type,usd_per_hour\ng6.xlarge,1e3\n", "p.csv:2: invalid price of g6.xlarge: 1e3:"),
        ("type,usd_per_hour\ng6.xlarge,\n", "p.csv:2: invalid price of g6.xlarge: nothing:"),
        ("type,usd_per_hour\n,5\n", "p.csv:2: missing key `type`"),
        ("type,usd_per_hour\ng6.xlarge,1,2\n", "p.csv:2: has 3 cells: write type,usd_per_hour"),
        ("type,usd_per_hour\ng6.xlarge,1\ng6.xlarge,2\n", "p.csv:3: g6.xlarge already has a price on line 2"),
        ("type,usd_per_hour,capacity\ng6.xlarge,1,sport\n", "p.csv:2: unknown capacity sport: write one of on-demand, spot, reserved"),
        ("type,usd_per_hour,capacity\ng6.xlarge,1,spot\ng6.xlarge,2,spot\n", "p.csv:3: g6.xlarge already has a price on line 2"),
        ('type,usd_per_hour\n"g6.xlarge,1\n', "p.csv: not CSV:"),
        ("type,usd_per_hour\n", "p.csv: contains no price:"),
        ("", "p.csv:1: the columns are : write type,usd_per_hour"),
    ],
)  # fmt: skip
def test_a_mistake_in_csv_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, "p.csv", text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p5.48xlarge: 40\n", "p.yaml:1: is an object: write a list of"),
        ("- p5.48xlarge\n", "p.yaml:1: is a string: write a list of"),
        ("- {type: g6.xlarge, usd_per_hour: 1}\n- {type: p5.48xlarge, usd_per_hours: 1}\n", "p.yaml:2: unknown key `usd_per_hours`; did you mean `usd_per_hour`?"),
        ("- {type: p5.48xlarge}\n", "p.yaml:1: missing key `usd_per_hour`"),
        ("- {type: g6.xlarge, usd_per_hour: 1, capacity: 5}\n", "p.yaml:1: unknown capacity a number: write one of"),
        ("- {type: 5, usd_per_hour: 1}\n", "p.yaml:1: the type is a number: put it in quotes"),
        ("- {type: p5.48xlarge, usd_per_hour: '40'}\n", "p.yaml:1: invalid price of p5.48xlarge: a string:"),
        ("- {type: p5.48xlarge, usd_per_hour: true}\n", "p.yaml:1: invalid price of p5.48xlarge: a boolean:"),
        ("- {type: p5.48xlarge, usd_per_hour: -0.5}\n", "p.yaml:1: invalid price of p5.48xlarge: -0.5:"),
        ("- {type: p5.48xlarge, usd_per_hour: .nan}\n", "p.yaml:1:"),
        ("- {type: p5.48xlarge, usd_per_hour: 1\n", "p.yaml:"),
        ("", "p.yaml: contains no price:"),
    ],
)  # fmt: skip
def test_a_mistake_in_yaml_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, "p.yaml", text)


def test_all_mistakes_are_said_at_once(tmp_path: Path) -> None:
    said = refusal(tmp_path, "p.csv", "type,usd_per_hour\na,-1\nb,-1\n" + "".join(f"c{n},0\n" for n in range(40)))

    assert len(said.splitlines()) == 21
    assert said.endswith("and 22 more")


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(PriceTableError, match="no such file or directory"):
        read_price_table(tmp_path / "none.csv", KNOWN)


def test_types_that_nobody_knows_are_kept_and_remarked_upon(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("type,usd_per_hour\np5.48xlrage,40\ndgx-h100,30\n")

    table = read_price_table(path, KNOWN)

    assert set(table.prices) == {"p5.48xlrage", "dgx-h100"}
    assert [remark.removeprefix(f"{path}:") for remark in table.remarks] == [
        "2: unknown instance type p5.48xlrage; did you mean p5.48xlarge?",
        "3: unknown instance type dgx-h100; it is used for nodes with this label",
    ]


@given(st.binary(max_size=200), st.sampled_from([".csv", ".yaml"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes, suffix: str) -> None:
    path = tmp_path_factory.getbasetemp() / f"prices{suffix}"
    path.write_bytes(data)

    try:
        table = read_price_table(path, KNOWN)
    except PriceTableError:
        return
    assert all(price > 0 for price in table.prices.values())


def test_own_prices_win_and_others_are_listed() -> None:
    prices = Prices(list_prices().catalogue, {"p5.48xlarge": Fraction(40), "dgx": Fraction(30)}, "contract.csv")

    assert [prices.of(kind) for kind in ("p5.48xlarge", "g6.xlarge", "dgx", "p5e.48xlarge", "m9.big")] == [
        40,
        Fraction("0.8048"),
        30,
        None,
        None,
    ]
    assert (
        str(prices) == "contract.csv for 2 instance types; for the others on-demand list prices, us-east-1, 2026-07-20"
    )


def test_list_prices_say_their_place_and_day() -> None:
    assert str(list_prices()) == "on-demand list prices, us-east-1, 2026-07-20"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.csv", "type,usd_per_hour,capacity\ng6.xlarge,0.6,\ng6.xlarge,0.3,spot\np5.48xlarge,20,spot\n"),
        (
            "p.yaml",
            (
                "- {type: g6.xlarge, usd_per_hour: 0.6}\n- {type: g6.xlarge, usd_per_hour: 0.3, capacity: spot}\n"
                "- {type: p5.48xlarge, usd_per_hour: 20, capacity: spot}\n"
            ),
        ),
    ],
)
def test_a_price_can_be_for_one_capacity(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    table = read_price_table(tmp_path / name, KNOWN)
    catalogue = list_prices().catalogue
    prices = Prices(
        catalogue, table.prices, "p", table.by_capacity, {"reserved": Fraction(1, 2), "spot": Fraction(1, 2)}
    )

    assert [prices.of("g6.xlarge", capacity) for capacity in CAPACITIES] == [
        Fraction("0.6"),
        Fraction("0.3"),
        Fraction("0.6"),
    ]
    listed = list_prices().of("p5.48xlarge")
    assert listed is not None
    assert [prices.of("p5.48xlarge", capacity) for capacity in CAPACITIES] == [listed, 20, listed / 2]
    assert str(prices).startswith("p for 2 instance types; for the others on-demand list prices, us-east-1")
    assert str(prices).endswith("with a discount of reserved 50%, spot 50%")
