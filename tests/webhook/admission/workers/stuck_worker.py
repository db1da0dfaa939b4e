"""A supervisor with a worker that starts to serve and then blocks; prints the exit of the worker."""

from __future__ import annotations

import sys
import threading

from gpugate.webhook.admission.workers import Board, Supervisor


def main() -> int:
    board = Board(1)

    def work(number: int) -> None:
        board.beat(number, ())
        threading.Event().wait()

    def ended(worker_exit: object) -> None:
        sys.stdout.write(f"{worker_exit}\n")
        sys.stdout.flush()

    supervisor = Supervisor(work, board, (), 0, ended, stuck_seconds=1)
    return supervisor.run(1, lambda: None, lambda: None, lambda: None)


if __name__ == "__main__":
    sys.exit(main())
