"""Makes text from manifests harmless in a terminal and in a CI log.

CI systems obey lines of a log. GitHub's runner takes `::` at the beginning of a line, behind white space too, and `##[`
anywhere (actions/runner v2.330 ActionCommand.cs, OutputManager.cs); the agent of Azure Pipelines takes `##vso[` anywhere,
and `##[` for its formats (azure-pipelines-agent v4 CommandStringConvertor.cs); TeamCity takes `##teamcity[`.
"""

from __future__ import annotations

import re
from typing import Final

_COMMAND: Final = re.compile(r"#(?=#[\w.-]*\[)|^(\s*):(?=:)")


def plain(text: str) -> str:
    """Replace what a terminal or a CI system would act on, and what cannot be seen; the length stays, so that carets fit.

    What comes before the text on its line has to be such that the line is no command.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " if c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
    if "##" in text or "::" in text:
        text = _COMMAND.sub("\\g<1>\N{REPLACEMENT CHARACTER}", text)
    return text


def plain_json(text: str) -> str:
    """Write JSON so that no string in it is a command for a CI system; it means the same."""
    return text.replace("##", "#\\u0023")


def plain_xml(text: str) -> str:
    """Write XML so that no text in it is a command for a CI system; it means the same."""
    return text.replace("##", "#&#35;")
