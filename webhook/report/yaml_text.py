"""Writes values as YAML for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.policies.sdk.field import Json


class _Dumper(yaml.SafeDumper):
    """Indents lists under their key, never writes aliases, and keeps blocks of lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 -- PyYAML's signature
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 -- PyYAML's signature
        super().increase_indent(flow, False)  # noqa: FBT003 -- PyYAML's signature


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def block(value: Json | Mapping[str, Json]) -> str:
    """Write a value over as many lines as it needs."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)


def inline(value: Json) -> str:
    """Write a value on one line."""
    text = yaml.dump(
        value,
        Dumper=yaml.SafeDumper,
        default_flow_style=True,
        sort_keys=False,
        allow_unicode=True,
        width=10**9,
    )
    return text.removesuffix("\n").removesuffix("\n...")
