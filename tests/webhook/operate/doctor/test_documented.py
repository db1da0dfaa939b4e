from __future__ import annotations

import re
from pathlib import Path

from gpugate.webhook.registration.drift_reasons import Reason

ROOT = Path(__file__).parents[4]
CODE = re.compile(r'(?:error|warning|note|level)\(\s*"([a-z-]+)"')


def test_every_code_is_documented() -> None:
    sources = (ROOT / "webhook" / "operate").glob("doctor*.py")
    said = {code for source in sources for code in CODE.findall(source.read_text(encoding="utf-8"))}
    documented = set(re.findall(r"`([a-z-]+)`", (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")))

    assert (said | {reason.value for reason in Reason}) - documented == set()
    assert "no-leader" in said
