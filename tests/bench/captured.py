"""Captured reviews, filled up to a size."""

from __future__ import annotations

import json
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


def review(name: str, size: int = 0) -> bytes:
    """A captured review, its first container's environment filled up to a size in bytes."""
    captured = json.loads((FIXTURES / "reviews" / f"{name}.json").read_text())
    body = json.dumps(captured, separators=(",", ":")).encode()
    if len(body) < size:
        env = captured["request"]["object"]["spec"]["containers"][0].setdefault("env", [])
        while len(body) < size:
            env.append({"name": f"SETTING_{len(env)}", "value": "a value of ordinary length"})
            body = json.dumps(captured, separators=(",", ":")).encode()
    return body
