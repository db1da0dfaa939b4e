from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
INSTALL = (ROOT / "image/install.py").read_text(encoding="utf-8")


def test_what_is_installed_from_is_copied() -> None:
    copied = {
        word for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE) for word in line.split()
    }
    named = re.findall(r"^(?:SOURCES|LOCKS) = \((.+)\)$", INSTALL, re.MULTILINE)
    assert {source for line in named for source in re.findall(r'"(.+?)"', line)} <= copied


def test_what_is_copied_is_sent_to_the_engine() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] == "!"}
    copied = {
        word for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE) for word in line.split()
    }
    assert {source.partition("/")[0] for source in copied} == sent


def test_no_health_check() -> None:
    assert "HEALTHCHECK" not in DOCKERFILE


def test_nothing_runs_as_root_in_the_last_stage() -> None:
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert last.index("USER 65532:65532") < last.index("RUN ")
