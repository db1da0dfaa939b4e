"""Write values as YAML for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from gpugate.webhook.manifests import yaml_reader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.policies.sdk.field import Json


class _Dumper(yaml.SafeDumper):
    """A dumper that indents lists under their key, never writes aliases, and writes multi-line strings as blocks."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 -- PyYAML's signature
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 -- PyYAML's signature
        super().increase_indent(flow, False)  # noqa: FBT003 -- PyYAML's signature


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else '"' if _is_misread(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _is_misread(text: str) -> bool:
    """Tell whether kubectl reads a text as another type but PyYAML does not, such as `y` and `1e3`."""
    try:
        return yaml_reader.resolve(text) != text
    except yaml_reader.ScalarError:
        return True


_Dumper.add_representer(str, _text)


def block(value: Json | Mapping[str, Json]) -> str:
    """Return a value as YAML in block style."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)


def inline(value: Json) -> str:
    """Return a value as YAML on one line."""
    text = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=True,
        sort_keys=False,
        allow_unicode=True,
        width=10**9,
    )
    return text.removesuffix("\n").removesuffix("\n...")
