"""What stands in for the audit of a cluster, in a process that imports it by its name."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from gpugate.policies.engine.config import GpugateError

if TYPE_CHECKING:
    import argparse


def audit(args: argparse.Namespace) -> int:
    """End as the context says."""
    if args.context == "hangs":
        threading.Event().wait()
    if args.context == "lingers":
        threading.Thread(target=threading.Event().wait).start()
    if args.context == "crashes":
        os._exit(7)
    if args.context == "refused":
        raise GpugateError("the policy file is invalid")
    return int(args.code)
