"""The log of real processes, through a pipe that is read slowly or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from contextlib import suppress
from typing import IO, TYPE_CHECKING

import pytest
from eventually import eventually

from gpugate.webhook.admission.log import LONGEST_LINE, LineQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_SECONDS = 60
LINES = 100_000


@pytest.fixture
def start() -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []

    def run(script: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", textwrap.dedent(script)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))  # noqa: S603 -- ours
        return running[-1]

    yield run
    for process in running:
        process.kill()
        process.communicate()


def read(stream: IO[bytes] | None) -> bytes:
    assert stream is not None
    return stream.read()


def test_unread_log_lines_do_not_block(start: Callable[[str], subprocess.Popen[bytes]]) -> None:
    process = start(f"""
        from gpugate.webhook.admission.log import Log

        dropped = []
        log = Log(dropped.append)
        log.start()
        for number in range({LINES}):
            log.event("info", "review", number=number, user="u" * 100)
        log.close(0.1)
        print(sum(dropped))
    """)
    # Standard error is read only after the process has exited.
    dropped = int(read(process.stdout))
    assert process.wait(PATIENCE_SECONDS) == 0
    written = [json.loads(line)["number"] for line in read(process.stderr).splitlines()]
    assert len(written) + dropped == LINES
    assert written == list(range(len(written)))
    assert dropped > 0


def test_every_line_is_written_when_the_log_closes(start: Callable[[str], subprocess.Popen[bytes]]) -> None:
    process = start("""
        from gpugate.webhook.admission.log import Log

        log = Log()
        log.event("info", "before the thread")
        log.start()
        for number in range(1000):
            log.event("info", "from the thread", number=number)
        log.close(60)
        log.event("info", "after it")
    """)
    written = [json.loads(line)["message"] for line in read(process.stderr).splitlines()]
    assert written == ["before the thread", *["from the thread"] * 1000, "after it"]


def test_lines_of_several_processes_do_not_mix(start: Callable[[str], subprocess.Popen[bytes]]) -> None:
    process = start("""
        import os
        from gpugate.webhook.admission.log import Log

        log = Log()
        children = []
        for number in range(3):
            child = os.fork()
            if not child:
                log.start()
                for length in range(2000):
                    log.event("info", "x" * (length % 250), worker=number, name="y" * (length % 250))
                log.close(60)
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
    """)
    workers = [json.loads(line)["worker"] for line in read(process.stderr).splitlines()]
    assert [workers.count(number) for number in range(3)] == [2000, 2000, 2000]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for descriptor in (reader, writer):
        try:
            os.close(descriptor)
        except OSError:
            continue


def test_without_a_thread_a_full_pipe_drops(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    dropped: list[int] = []
    queue = LineQueue(writer, dropped.append)
    for _ in range(1000):
        queue.put(b"x" * 999 + b"\n")
    assert 0 < sum(dropped) < 1000
    assert os.read(reader, 1_000_000).count(b"\n") + sum(dropped) == 1000


@pytest.mark.parametrize("threaded", [False, True], ids=["at-once", "from-a-thread"])
def test_a_closed_pipe_drops_lines(pipe: tuple[int, int], threaded: bool) -> None:  # noqa: FBT001 -- a table's column
    reader, writer = pipe
    os.close(reader)
    dropped: list[int] = []
    queue = LineQueue(writer, dropped.append)
    if threaded:
        queue.start()
    queue.put(b"x\n")
    queue.close(PATIENCE_SECONDS)
    assert sum(dropped) == 1


def test_a_descriptor_that_does_not_block_loses_nothing(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.set_blocking(writer, False)
    dropped: list[int] = []
    queue = LineQueue(writer, dropped.append)
    queue.start()
    for _ in range(1000):
        queue.put(b"x" * 999 + b"\n")
    received = 0
    while received < 1000 * 1000:
        received += len(os.read(reader, 1_000_000))
    queue.close(PATIENCE_SECONDS)
    assert dropped == []


LINE = b"x" * 9 + b"\n"


@pytest.fixture
def full_pipe(pipe: tuple[int, int]) -> tuple[int, int]:
    """A pipe to which every write blocks."""
    reader, writer = pipe
    os.set_blocking(writer, False)
    try:
        while os.write(writer, b"x" * LONGEST_LINE):
            continue
    except BlockingIOError:
        os.set_blocking(writer, True)
    return reader, writer


def test_the_queue_is_limited_in_bytes_and_drops_its_rest(full_pipe: tuple[int, int]) -> None:
    dropped: list[int] = []
    queue = LineQueue(full_pipe[1], dropped.append, most_bytes=3 * len(LINE))
    queue.start()
    queue.put(LINE)
    # The thread takes the line and blocks in the write.
    assert eventually(lambda: queue._in_flight == 1)
    for _ in range(4):
        queue.put(LINE)
    assert dropped == [1]
    queue.close(0)
    assert dropped == [1, 4]


def test_lines_that_were_dropped_at_the_end_are_never_written(full_pipe: tuple[int, int]) -> None:
    reader, writer = full_pipe
    queue = LineQueue(writer, lambda _: None)
    queue.start()
    thread = queue._writer
    assert thread is not None
    queue.put(LINE)
    assert eventually(lambda: queue._in_flight == 1)
    queue.put(LINE)
    queue.close(0)
    # The write that was blocked continues when the pipe is read.
    os.set_blocking(reader, False)
    read = os.read(reader, 1_000_000)
    thread.join(PATIENCE_SECONDS)
    with suppress(BlockingIOError):
        read += os.read(reader, 1_000_000)
    assert (read.count(b"\n"), thread.is_alive()) == (1, False)


def test_after_a_close_the_queue_can_start_again(pipe: tuple[int, int]) -> None:
    dropped: list[int] = []
    queue = LineQueue(pipe[1], dropped.append, most_bytes=len(LINE))
    for _ in range(3):
        queue.start()
        queue.put(LINE)
        queue.close(PATIENCE_SECONDS)
        queue.close(PATIENCE_SECONDS)
    assert (os.read(pipe[0], 1000), dropped) == (LINE * 3, [])


def test_lines_are_written_together_up_to_the_size_that_a_pipe_accepts_at_once(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    queue = LineQueue(pipe[1], lambda _: None)
    queue.start()
    for size in (LONGEST_LINE, 1000, 3000, 96, 1, LONGEST_LINE - 1, 2):
        queue._lines.append(b"x" * size)
        queue._bytes += size
    monkeypatch.setattr(queue, "_write", lambda chunk: written.append(len(chunk)) is None)
    queue.close(PATIENCE_SECONDS)
    assert (written, queue._bytes) == ([LONGEST_LINE, LONGEST_LINE, LONGEST_LINE, 2], 0)
