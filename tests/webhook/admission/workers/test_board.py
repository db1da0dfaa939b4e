from __future__ import annotations

import os

from gpugate.webhook.admission.workers import Board


def test_workers_that_have_not_served_yet_are_missing() -> None:
    board = Board(2)
    board.beat(0, ())
    assert (board.missing(), board.is_serving) == (("worker 2: starting",), False)


def test_ready_when_every_worker_serves_and_is_complete() -> None:
    board = Board(2)
    board.beat(0, ())
    board.beat(1, ())
    assert (board.missing(), board.is_serving) == ((), True)


def test_missing_parts_of_a_worker_are_listed() -> None:
    board = Board(1)
    board.beat(0, ("nodepools.karpenter.sh not listed yet", "jobs.batch not listed yet"))
    assert board.missing() == ("worker 1: nodepools.karpenter.sh not listed yet; jobs.batch not listed yet",)


def test_a_long_list_is_cut() -> None:
    board = Board(1)
    board.beat(0, ["x" * 100] * 100)
    assert len(board.missing()[0]) < 300


def test_draining_is_reported_first() -> None:
    board = Board(1)
    board.beat(0, ())
    board.drain()
    assert (board.missing(), board.is_draining) == (("shutting down",), True)


def test_beats_are_counted_and_cleared() -> None:
    board = Board(1)
    board.beat(0, ())
    board.beat(0, ())
    counted = board.beats(0)
    board.clear(0)
    assert (counted, board.beats(0), board.is_serving) == (2, 0, False)


def test_other_processes_see_it() -> None:
    board = Board(1)
    child = os.fork()
    if not child:
        board.beat(0, ())
        os._exit(0)
    os.waitpid(child, 0)
    assert (board.beats(0), board.missing()) == (1, ())


def test_a_process_besides_the_workers_has_its_own_name() -> None:
    board = Board(1, ("certificates",))
    board.beat(0, ())
    before, serving = board.missing(), board.is_serving
    board.beat(1, ("not trusted yet",))
    assert (board.rows, before, serving) == (2, ("certificates: starting",), False)
    assert (board.missing(), board.is_serving) == (("certificates: not trusted yet",), True)


def test_a_process_besides_the_workers_delays_readiness_once() -> None:
    board = Board(1, ("certificates",))
    board.beat(0, ())
    missing = []
    for says in (("not trusted yet",), ()):
        board.beat(1, says)
        board.clear(1)
        missing.append(board.missing())
    assert (missing, board.beats(1)) == ([("certificates: starting",), ()], 0)
