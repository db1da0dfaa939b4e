"""The formats of `gpugate simulate` on a dump with Pods that do not exist yet."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from simulate.cluster_objects import OBJECTS, cron_job, workload

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

HEAD = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
FORMATS = ("text", "markdown", "html", "json")


@pytest.fixture
def written(tmp_path: Path, gpugate: Run) -> Callable[..., dict[str, str]]:
    """Return each format of the simulation of a dump."""

    def run(*objects: dict[str, Any], flags: tuple[str, ...] = ()) -> dict[str, str]:
        for name, mode in (("current", "warn"), ("candidate", "enforce")):
            (tmp_path / f"{name}.yaml").write_text(f"{HEAD}policies:\n  pods/wildcard-toleration: {{mode: {mode}}}\n")
        (tmp_path / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
        files = [word for name in ("current", "candidate") for word in (f"--{name}", str(tmp_path / f"{name}.yaml"))]
        outputs = [word for name in FORMATS for word in ("-o", f"{name}={tmp_path / name}")]
        ran = gpugate("simulate", *files, "--from", str(tmp_path / "dump.json"), *outputs, *flags)
        assert ran.code == 0, ran.err
        return {name: (tmp_path / name).read_text() for name in FORMATS}

    return run


SECTIONS = (
    "Pods that would not come back if their node is removed",
    "Scheduled runs in the next 7 days that would be denied",
    "Scale-ups that would be denied",
    "Proposed exemptions",
    "Not evaluated",
)


def test_every_format_has_every_section(written: Callable[..., dict[str, str]]) -> None:
    formats = written(*OBJECTS)
    assert [title for title in SECTIONS if title.upper() not in formats["text"]] == []
    assert [title for title in SECTIONS if f"<summary>{title}: " not in formats["markdown"]] == []
    assert [title for title in SECTIONS if f"<h2>{title}</h2>" not in formats["html"]] == []
    document = json.loads(formats["json"])
    assert [key for key in ("nodes", "pools", "runs", "scale_ups", "exemptions", "gaps") if not document[key]] == []


def test_figures_are_the_same_in_every_format(written: Callable[..., dict[str, str]]) -> None:
    formats = written(*OBJECTS)
    denied = json.loads(formats["json"])["denied"]
    sentence = (
        f"{denied['owners']} owners newly denied ({denied['gpus']:g} GPUs, ${denied['usd_per_hour']:,.2f} per hour)"
    )
    assert denied["gpus"] == 12.0
    assert sentence in formats["text"]
    assert sentence in formats["html"]
    assert sentence in formats["markdown"].replace("\\", "")


def test_exemptions_have_the_owner_and_the_end_that_flags_state(written: Callable[..., dict[str, str]]) -> None:
    formats = written(*OBJECTS, flags=("--exemption-owner", "platform", "--exemption-days", "14"))
    document = json.loads(formats["json"])
    assert {entry["owner"] for entry in document["exemptions"]} == {"platform"}
    end = document["exemptions"][0]["expires"]
    assert f"until {end}, owner platform" in formats["text"]
    assert f"<td>platform<td>{end}" in formats["html"]


def test_the_page_runs_no_script_and_loads_nothing(written: Callable[..., dict[str, str]]) -> None:
    page = written(*OBJECTS)["html"]
    (policy,) = re.findall(r'Content-Security-Policy content="([^"]*)"', page)
    assert html.unescape(policy).startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy
    assert re.findall(r"<script|<link|<img|src=|javascript:|https?://", page) == []


def test_every_link_of_the_page_has_a_target(written: Callable[..., dict[str, str]]) -> None:
    page = written(*OBJECTS)["html"]
    links, targets = set(re.findall(r"href=#([\w-]+)", page)), set(re.findall(r" id=([\w-]+)", page))
    assert links
    assert links - targets == set()


def test_names_cannot_be_markup(written: Callable[..., dict[str, str]]) -> None:
    # No API server stores such a name, but a dump may contain anything.
    evil = "<script>alert(1)</script>|`x`"
    formats = written(*workload("Deployment", evil, 1, ("n1",)))
    assert evil in json.loads(formats["json"])["changes"][0]["object"]["name"]
    assert "<script" not in formats["html"]
    assert re.findall(r"(?<!\\)<script", formats["markdown"]) == []
    assert "\x1b" not in formats["text"]


@pytest.mark.parametrize("days", [1, 31])
def test_runs_are_those_of_the_days_that_a_flag_states(written: Callable[..., dict[str, str]], days: int) -> None:
    document = json.loads(written(cron_job("nightly", "0 3 * * *"), flags=("--days", str(days)))["json"])
    assert ([entry["runs"] for entry in document["runs"]], document["days"]) == ([days], days)


@pytest.mark.parametrize("days", ["0", "32", "x"])
def test_days_are_bounded(gpugate: Run, days: str) -> None:
    ran = gpugate("simulate", "--days", days, "--candidate", "x", "--from", "x")
    assert (ran.code, "--days: invalid number of days" in ran.err) == (2, True)
