"""Audits of objects given as YAML: `scanned(folder, text)`."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.audit.dump import DumpSource
from gpugate.webhook.audit.scan import Scan, scan
from gpugate.webhook.audit.selection import Options

if TYPE_CHECKING:
    from pathlib import Path

TIME = dt.datetime(2026, 11, 21, 10, 17, tzinfo=dt.UTC)


def scanned(folder: Path, text: str, config: PolicyConfig | None = None, time: dt.datetime = TIME) -> Scan:
    path = folder / "dump.yaml"
    path.write_text(text, encoding="utf-8")
    return scan(DumpSource([str(path)], complete=True), bind(CATALOG, config or PolicyConfig()), Options(time))
