"""The modules here import each other by name, because `bench.py` is run as a script; its tests do the same."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
