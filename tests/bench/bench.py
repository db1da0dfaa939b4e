"""How fast it is: reviews in the process and over the wire, and the command line.

Run with `make bench`. Each figure is the median of several runs, with the least and the most beside it; on a noisy
machine the least is the one to compare. CPU time is steadier than wall time, and the ratio to the bare handler, measured
in turns, tells slower code from a slower machine.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import audits
import command_line
import comparison
import figures
import fleet_reports
import in_process
import open_loop
import record
import served
import shadow
import worker_counts
from load_generator import LoadError
from servers import ServerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from figures import Figure, Measured

PARTS: Final[dict[str, tuple[Callable[[], Iterator[Measured]], str]]] = {
    "reviews": (in_process.measure, "a review from bytes to bytes, without a server"),
    "commands": (command_line.measure, "the command line: its start, one file, many files"),
    "server": (served.measure, "reviews over TLS, beside a handler that does nothing on the same front"),
    "audits": (audits.measure, "audits of clusters of three sizes, in pages from another process"),
    "shadow": (shadow.measure, "the server with a shadow policy file, beside one without, in turns"),
    "record": (record.measure, "the server with a record of reviews, beside one without, in turns"),
    "rates": (
        open_loop.measure,
        "the latency at 20, 100 and 300 reviews a second, sent when they are due; takes six minutes",
    ),
    "fleet": (fleet_reports.measure, "the report of 500 clusters of 5, 15 and 30 days; takes ten minutes"),
    "workers": (worker_counts.measure, "the server with one to four workers"),
}
USUAL: Final = ("reviews", "commands", "server", "audits")
THRESHOLD_PERCENT: Final = 20.0


def main() -> int:
    """Measure, show, keep and compare; returns the exit code."""
    args = _parser().parse_args()
    try:
        before = figures.load(args.compare) if args.compare else []
        found = list(_measured(args.only or USUAL))
    except (figures.FiguresError, LoadError, ServerError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    if args.save:
        figures.save(args.save, found)
    return _compare(before, found, args.threshold) if args.compare else 0


def _measured(parts: list[str] | tuple[str, ...]) -> Iterator[Figure]:
    for part in parts:
        measure, about = PARTS[part]
        sys.stdout.write(f"{part}: {about}\n")
        for measured in measure():
            sys.stdout.write(f"  {figures.line(measured)}\n")
            sys.stdout.flush()
            yield measured.figure


def _compare(before: list[Figure], found: list[Figure], threshold: float) -> int:
    changes = comparison.changes(before, found)
    if not changes:
        sys.stderr.write("error: none of the figures in the file was measured now\n")
        return 2
    sys.stdout.write(f"\n{comparison.table(changes, threshold)}\n")
    worse = sum(change.is_worse(threshold) for change in changes)
    sys.stdout.write(f"{worse} of {len(changes)} figures worse by more than {threshold:g} %\n")
    return 1 if worse else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench",
        description="Measure gpugate. Parts: " + "; ".join(f"{part}: {about}" for part, (_, about) in PARTS.items()),
        epilog="""To see what a change costs: bench --save before.json; make the change; bench --compare before.json.
            A figure is worse when its median and its best run both are, by more than the threshold; figures that only
            one of the two has are left out. Exit codes: 0 nothing is worse; 1 something is; 2 it could not be measured or
            compared.""",
    )
    parser.add_argument("--only", action="append", choices=PARTS, help=f"repeatable (default: {', '.join(USUAL)})")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the figures, as JSON")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with figures that --save kept")
    parser.add_argument(
        "--threshold",
        type=float,
        default=THRESHOLD_PERCENT,
        metavar="PCT",
        help="how much worse may be, in percent (default: %(default)g)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
