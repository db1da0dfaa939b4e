"""The formats of `gpugate check`; each is imported when it is asked for."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.report.located import Report
    from gpugate.webhook.report.plain import When

FORMATS: Final = ("text", "concise", "json", "github", "gitlab", "sarif", "junit", "markdown")


@dataclass(frozen=True, slots=True)
class Shown:
    """A report with what the formats need beside it.

    `seconds` is how long the run took; `suppressed` shows what is suppressed where a format would leave it out.
    """

    report: Report
    policies: Sequence[Policy]
    seconds: float
    color: When = "auto"
    quiet: bool = False
    suppressed: bool = False

    def write(self, name: str, file: str) -> str:
        """Write the report in a format, for a file or, where that is empty, for standard output."""
        report, root = self.report, Path.cwd()
        module = import_module(f"gpugate.webhook.report.{name}")
        beside = {"quiet": self.quiet, "seconds": self.seconds}
        text: str
        if name == "text":
            text = module.write(report, self._paint(file), suppressed=self.suppressed, **beside)
        elif name == "concise":
            text = module.write(report, suppressed=self.suppressed, **beside)
        elif name == "sarif":
            text = module.write(report, self.policies, root, suppressed=self.suppressed)
        elif name == "github":
            text = module.write(report, root)
        elif name == "gitlab":
            text = module.write(report, root, Path(os.environ.get("CI_PROJECT_DIR") or root))
        elif name == "json":
            text = module.write(report)
        else:
            text = module.write(report, self.seconds)
        return text

    def _paint(self, file: str) -> object:
        from gpugate.webhook.report import plain  # noqa: PLC0415 -- only this format has colours

        is_terminal = not file and sys.stdout.isatty()
        return plain.Paint(plain.wanted(self.color, is_terminal=is_terminal, environment=os.environ))
