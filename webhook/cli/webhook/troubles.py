"""Says why the API server does not reach the webhook."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from gpugate.webhook.operate.waiting import Reach


def tell_troubles(reach: Reach, out: TextIO) -> None:
    """Write each trouble with what the API server said and what to do."""
    for trouble in reach.troubles:
        print(f"  {plain(trouble.what)}", file=out)
        if trouble.said:
            print(f"    the API server says: {plain(trouble.said)}", file=out)
        print(f"    {plain(trouble.remedy)}", file=out)
