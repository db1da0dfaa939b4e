"""The modules here import each other and `fleets` by name, because `bench.py` is run as a script; its tests do the same."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "webhook")]
