"""A project file to begin with: every key with what it means, commented out."""

from __future__ import annotations

from typing import Final

from gpugate.webhook.project.settings import SETTINGS

_HEAD: Final = """\
# How gpugate runs in this repository. Flags and variables win over what stands here; paths are relative to this file.
# `gpugate config show --origin` says what holds, and who says so; `gpugate config schema project` is for editors.
"""


def skeleton() -> str:
    """Return the text."""
    keys = "".join(
        f"\n# {setting.text[:1].upper()}{setting.text[1:]}.\n# {setting.key}: {setting.example}\n"
        for setting in SETTINGS
    )
    return _HEAD + keys
