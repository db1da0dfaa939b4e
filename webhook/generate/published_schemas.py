"""The JSON schemas of what gpugate reads and writes, as files for editors and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpugate.webhook.generate.case_schema import case_schema
from gpugate.webhook.generate.config_schema import config_schema
from gpugate.webhook.generate.project_schema import project_schema
from gpugate.webhook.report import audit_schema

if TYPE_CHECKING:
    from collections.abc import Mapping


def published_schemas() -> Mapping[str, str]:
    """Return file name -> text; the version is in the name, because readers of an older one keep theirs."""
    schemas = {
        "policy-v1.schema.json": config_schema(),
        "project-v1.schema.json": project_schema(),
        "test-v1.schema.json": case_schema(),
        "audit-v1.schema.json": audit_schema.schema(),
    }
    return {
        name: f"{msgspec.json.format(msgspec.json.encode(each), indent=2).decode()}\n" for name, each in schemas.items()
    }
