"""The pages of `docs/reference` that are written from schemas: file name -> text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.generate.config_schema import config_schema
from gpugate.webhook.generate.project_page import project_page
from gpugate.webhook.generate.schema_page import schema_page
from gpugate.webhook.generate.values_page import values_page
from gpugate.webhook.report import audit_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

_POLICY_FILE: Final = """The webhook, the audit, `check` and `test` read one file, `policy.yaml`; Helm's value `policy` is its content. What each
policy takes under `params` is on the page of the policy ([all of them](../../policies/README.md)). Editors take
[policy-v1.schema.json](../schemas/policy-v1.schema.json), which `gpugate config schema` prints too.

A key that is not here is refused, with its place. `off` may be written without quotes: YAML 1.1 reads it as `false`.
Names and patterns: an exact name beats a pattern, and two patterns that both fit are refused."""
_AUDIT: Final = """What `gpugate audit -o json` writes; [audit-v1.schema.json](../schemas/audit-v1.schema.json) is its JSON schema. What the
figures mean is in [the definitions](../audit.md#definitions). Within `gpugate.dev/audit/v1` members are added and never
taken away, nor given another meaning."""


def reference_pages() -> Mapping[str, str]:
    """Return the pages."""
    return {
        "policy-file.md": schema_page("Policy file", _POLICY_FILE, config_schema()),
        "project-file.md": project_page(),
        "audit-json.md": schema_page("JSON of an audit", _AUDIT, audit_schema.schema()),
        "helm-values.md": values_page(),
    }
