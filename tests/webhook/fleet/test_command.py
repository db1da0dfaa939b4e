from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import fastjsonschema
import pytest
from buckets import Bucket
from fleets import Fleet, write_fleet

from gpugate.webhook.cli.main import main
from gpugate.webhook.fleet.formats import CSV_COLUMNS
from gpugate.webhook.fleet.model import VIEWS

if TYPE_CHECKING:
    from collections.abc import Sequence

AT = ("--at", "2026-11-23T12:00:00Z")
SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "fleet-report-v1.schema.json"


def builtin(value: object) -> object:
    return int(value) if isinstance(value, Decimal) else str(value)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fleet")
    write_fleet(path, Fleet(clusters=3, days=9, objects=20))
    return path


@pytest.fixture(scope="module")
def outputs(path: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """All formats of one report."""
    folder = tmp_path_factory.mktemp("outputs")
    names = ("text", "json", "csv", "html")
    code = main(["fleet", "report", str(path), *AT, *(f"-o{name}={folder / name}" for name in names)])
    assert code == 0
    return {name: (folder / name).read_text(encoding="utf-8") for name in names}


def test_the_document_has_the_published_schema(outputs: dict[str, str]) -> None:
    fastjsonschema.compile(json.loads(SCHEMA.read_text(encoding="utf-8")))(json.loads(outputs["json"]))


def test_the_text_names_all_clusters_and_the_total(outputs: dict[str, str]) -> None:
    document = json.loads(outputs["json"])
    assert outputs["text"].startswith("Fleet of 3 clusters, 2026-11-23 12:00 UTC\n")
    assert f"spend ${document['totals']['spend_usd']:,.2f}/h" in outputs["text"]
    assert all(row["cluster"] in outputs["text"] for row in document["clusters"])


USES = ("allocated", "busy", "under_used", "parked", "idle", "doubtful", "unknown")


def test_the_text_and_the_table_of_values_have_the_gpus_of_each_model(outputs: dict[str, str]) -> None:
    models = {row["model"]: [row[use] for use in USES] for row in json.loads(outputs["json"])["gpu_models"]}
    assert models
    lines = outputs["text"].partition("GPU MODEL")[2].partition("GPUS BY TEAM")[0].splitlines()[1:]
    of_text = {
        words[0]: [float(word.replace(",", "")) for word in words[1:8]] for words in map(str.split, lines) if words
    }
    rows = [row for row in csv.DictReader(io.StringIO(outputs["csv"])) if row["by"] == "model"]
    columns = ("gpus", *(f"{use}_gpus" for use in USES[1:]))
    of_values = {row["model"]: [float(row[column]) for column in columns] for row in rows}
    assert of_text == of_values == models


def test_the_table_of_values_has_a_row_for_each_group(outputs: dict[str, str]) -> None:
    document, rows = json.loads(outputs["json"]), [*csv.DictReader(io.StringIO(outputs["csv"]))]
    assert tuple(rows[0]) == CSV_COLUMNS
    names = {(row["by"], row["name"]) for row in rows}
    assert names == {
        *(("cluster", row["cluster"]) for row in document["clusters"]),
        *(("region", row["name"]) for row in document["regions"]),
        *(("team", row["name"]) for row in document["teams"]),
        *(("policy", row["name"]) for row in document["policies"]),
        *(("model", row["model"]) for row in document["gpu_models"]),
        *(("team-model", row["team"]) for row in document["gpu_teams"]),
        *(("cluster-model", row["cluster"]) for row in document["gpu_clusters"]),
    }


def test_the_page_runs_its_own_script_and_loads_nothing(outputs: dict[str, str]) -> None:
    page = outputs["html"]
    (script,) = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = html.unescape(page)
    assert f"script-src 'sha256-{digest}'; base-uri 'none'" in page
    assert "default-src 'none'; style-src 'sha256-" in page
    assert " src=" not in page
    assert "http://" not in page


def test_names_cannot_become_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow as pa  # noqa: PLC0415 -- only this test edits a file
    import pyarrow.parquet as pq  # noqa: PLC0415 -- as above

    write_fleet(tmp_path, Fleet(clusters=1, days=1, objects=20))
    for file in (tmp_path / "objects").rglob("*.parquet"):
        rows = pq.read_table(file)
        hostile = pa.array(["<img src=x onerror=alert(1)>\x1b[31m"] * len(rows))
        pq.write_table(rows.set_column(rows.schema.get_field_index("name"), "name", hostile), file)
    assert main(["fleet", "report", str(tmp_path), *AT, "-o", f"html={tmp_path / 'page'}", "-o", "text"]) == 0
    assert "<img" not in (tmp_path / "page").read_text(encoding="utf-8")
    assert "\x1b" not in capsys.readouterr().out


def test_the_views_give_the_rows_of_the_report(
    path: Path, outputs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", "sql", str(path), *AT]) == 0
    document = json.loads(outputs["json"])
    with duckdb.connect() as database:
        database.execute(capsys.readouterr().out)
        for view, (field, _) in VIEWS.items():
            rows = database.sql(f"FROM {view}").to_arrow_table().to_pylist()
            expected = [document[field]] if field == "totals" else document[field]
            # A sum of integers has no bound in SQL, so it is a decimal there.
            assert json.loads(json.dumps(rows, default=builtin)) == [pytest.approx(row) for row in expected], view


def test_a_table_without_files_is_an_empty_view(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_fleet(tmp_path, Fleet(clusters=1, days=1, objects=20, tables=("runs", "money", "objects", "findings")))
    assert main(["fleet", "sql", str(tmp_path), *AT]) == 0
    with duckdb.connect() as database:
        database.execute(capsys.readouterr().out)
        assert database.sql("FROM gpus").fetchall() == []
        models = database.sql("SELECT allocated, unknown FROM fleet_gpu_models").fetchall()
        assert models
        assert all(allocated == unknown for allocated, unknown in models)


@pytest.mark.parametrize("dialect", ["clickhouse", "trino"])
def test_the_views_are_printed_for_other_engines(dialect: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "sql", "--dialect", dialect]) == 0
    text = capsys.readouterr().out
    assert [line.split()[4] for line in text.splitlines() if line.startswith("CREATE OR REPLACE VIEW")] == [*VIEWS]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["report"], 2, "error: PATH is missing: name the directory or bucket of the tables, or an engine that has them with --engine"),
        (["report", ".", "--days", "0"], 2, "--days: invalid number of days '0': write 1 to 366"),
        (["report", ".", "--at", "noon"], 2, "invalid time 'noon': write a time with a zone, such as 2026-11-23T12:00:00Z"),
        (["report", ".", "--silent-after", "soon"], 2, "invalid duration 'soon': write 90s, 5m or 1h"),
        (["report", ".", "--timeout", "0s"], 2, "invalid timeout '0s': write a duration up to 1h, such as 30s"),
        (["report", ".", "--top", "-1"], 2, "invalid number '-1': write 0 or more"),
        (["report", "/nonexistent"], 4, "/nonexistent: no table `runs`: `gpugate audit -o parquet=/nonexistent` writes the tables"),
        (["report", "--engine", "nosuch://x"], 2, "error: --engine nosuch: "),
        (["sql", ".", "--dialect", "trino"], 2, "error: --dialect trino: define the tables in the engine, and leave out PATH"),
    ],
)  # fmt: skip
def test_errors_say_what_to_do(
    arguments: Sequence[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        result = main(["fleet", *arguments])
    except SystemExit as left:  # argparse leaves the program
        result = int(left.code or 0)
    assert result == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "sql"])
def test_a_store_that_does_not_answer_ends_the_command(command: str, tmp_path: Path) -> None:
    bucket = Bucket(tmp_path)
    bucket.answers = "nothing"
    with bucket.served():
        program = (sys.executable, "-m", "gpugate", "fleet", command, bucket.url, "--timeout", "1s")
        result = subprocess.run(program, capture_output=True, text=True, check=False)  # noqa: S603 -- our own program
    assert f"{bucket.url}: no answer within 1 s: check the address and the network" in result.stderr
    assert result.returncode == {"report": 4, "sql": 2}[command]


def test_an_old_fleet_is_nothing_to_report(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "report", str(path), "--at", "2027-11-23T12:00:00Z"]) == 3
    assert "no run in the last 30 days" in capsys.readouterr().err


def test_a_report_with_a_problem_has_an_exit_code_of_its_own(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "report", str(path), "/nonexistent", *AT]) == 4
    assert "note: /nonexistent: no table `runs`" in capsys.readouterr().out


@pytest.mark.parametrize("module", ["duckdb", "fsspec", "ibis", "pyarrow"])
def test_without_a_library_the_error_names_the_extra(module: str) -> None:
    program = (
        f"import sys; sys.modules[{module!r}] = None; from gpugate.webhook.cli.main import main; "
        "sys.exit(main(['fleet', 'report', '.']))"
    )
    result = subprocess.run(  # noqa: S603 -- our own program
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert "install the extra `fleet`: run `pip install '.[fleet]'`" in result.stderr


def test_the_help_needs_no_library() -> None:
    program = (
        "import sys; from gpugate.webhook.cli.parsers import parsers; parsers(); "
        "sys.exit(bool({'duckdb', 'fsspec', 'ibis', 'pandas', 'pyarrow'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], check=False)  # noqa: S603 -- as above
    assert result.returncode == 0
