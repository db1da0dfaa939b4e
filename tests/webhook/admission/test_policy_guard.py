"""Policies outside the library are charged with their failures in memory that all processes share."""

from __future__ import annotations

import io
import mmap
import multiprocessing
import os
import resource
import signal
import threading
import time
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.engine.config import OutOfTimeError
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Skip
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import Policy, validates
from gpugate.webhook.admission import policy_guard
from gpugate.webhook.admission.policy_guard import (
    MOST_BYTES,
    MOST_CPU_SECONDS,
    MOST_FAILURES,
    MOST_SECONDS,
    OFF_SECONDS,
    SWITCHED_OFF,
    Guard,
    Guarding,
    Limits,
    PolicyTimeoutError,
    Trial,
    address_space,
    seconds_starved,
    trial,
)
from gpugate.webhook.manifests.policy_file import PolicyFileError
from gpugate.webhook.own_policies.sources import MOST_POLICIES, OwnPolicyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.sdk.policy import AnyContext

SET, OTHER = b"1" * 32, b"2" * 32


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(clock: Clock) -> Guard:
    guard = Guard(2, clock)
    guard.accept(SET)
    return guard


def fail(guard: Guard, times: int) -> None:
    for _ in range(times):
        guard.failed(3)


def test_repeated_failures_switch_a_policy_off_for_some_time(guard: Guard, clock: Clock) -> None:
    fail(guard, MOST_FAILURES - 1)
    assert not guard.is_off(3)

    fail(guard, 1)
    assert (guard.is_off(3), guard.is_off(2)) == (True, False)
    clock.now += OFF_SECONDS
    assert not guard.is_off(3)


def test_after_the_time_one_failure_switches_it_off_again_and_a_success_forgets_all(guard: Guard, clock: Clock) -> None:
    fail(guard, MOST_FAILURES)
    clock.now += OFF_SECONDS
    fail(guard, 1)
    assert guard.is_off(3)

    clock.now += OFF_SECONDS
    guard.succeeded(3)
    fail(guard, MOST_FAILURES - 1)
    assert not guard.is_off(3)


def test_a_success_in_between_keeps_it_on(guard: Guard, clock: Clock) -> None:
    # The clock may count from the start of the machine.
    clock.now = 0.0
    for _ in range(3):
        fail(guard, MOST_FAILURES - 1)
        guard.succeeded(3)
    assert not guard.is_off(3)


def test_a_death_is_charged_to_the_policy_that_was_called(guard: Guard) -> None:
    guard.begin(1)
    guard.running(1, 3)
    assert (guard.died(os.getpid() + 1), guard.died(os.getpid()), guard.failures(3)) == (None, 3, 4)
    # The process is gone.
    assert guard.died(os.getpid()) is None


def test_a_death_between_calls_is_charged_to_none(guard: Guard) -> None:
    guard.begin(1)
    guard.running(1, 3)
    guard.running(1, None)
    assert guard.died(os.getpid()) is None


def test_another_set_starts_without_failures(guard: Guard) -> None:
    fail(guard, MOST_FAILURES)
    guard.accept(SET)
    assert guard.is_off(3)

    guard.accept(OTHER)
    assert (guard.accepted, guard.is_off(3)) == (OTHER[:16], False)


@pytest.fixture
def alarm() -> Iterator[None]:
    before, memory = signal.getsignal(signal.SIGALRM), resource.getrlimit(resource.RLIMIT_AS)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    resource.setrlimit(resource.RLIMIT_AS, memory)


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize(
    ("waited", "starved", "is_too_long"),
    [
        (MOST_SECONDS / 2, 0.0, False),
        (MOST_SECONDS, 0.0, True),
        (MOST_SECONDS * 4, MOST_SECONDS * 3.5, False),
        (MOST_SECONDS * 4, MOST_SECONDS * 2.5, True),
    ],
)
def test_a_call_is_not_charged_for_waiting_for_a_processor(
    clock: Clock, waited: float, starved: float, *, is_too_long: bool
) -> None:
    of_thread = Clock()
    limits = Limits(clock, of_thread)

    def run(_subject: Any, _ctx: Any) -> Iterator[str]:
        # Two ticks of the timer.
        for _ in range(2):
            of_thread.now += starved / 2
            clock.now += waited / 2
            signal.raise_signal(signal.SIGALRM)
        yield "found"

    def called() -> list[Any]:
        return limits.call(run, None, None)  # type: ignore[arg-type]

    if is_too_long:
        with pytest.raises(PolicyTimeoutError):
            called()
        # Nothing is interrupted between calls.
        clock.now += MOST_SECONDS
        signal.raise_signal(signal.SIGALRM)
    else:
        assert called() == ["found"]
    limits.disarm()


def spin(processor: int) -> None:
    os.sched_setaffinity(0, {processor})
    while True:
        pass


def starve(processor: int) -> None:
    os.sched_setaffinity(0, {processor})
    end = time.monotonic() + 60
    while seconds_starved() < 0.05 and time.monotonic() < end:
        pass
    os._exit(0 if seconds_starved() >= 0.05 else 1)


def test_the_kernel_counts_how_long_a_thread_waits_for_a_processor() -> None:
    if not seconds_starved():
        pytest.skip("this kernel does not count it")
    fork, processor = multiprocessing.get_context("fork"), min(os.sched_getaffinity(0))
    beside, starved = (fork.Process(target=run, args=(processor,), daemon=True) for run in (spin, starve))
    beside.start()
    try:
        starved.start()
        starved.join()
        assert starved.exitcode == 0
    finally:
        beside.kill()
        beside.join()


def ends() -> None:
    os._exit(3)


def hangs() -> None:
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(60)


def allocates() -> None:
    bytearray(1 << 30)


def test_a_trial_is_limited_in_time_and_memory() -> None:
    with pytest.raises(OwnPolicyError, match=r"the policies are not loaded within 0.2 s: remove slow code"):
        trial(hangs, 0.2)
    with pytest.raises(OwnPolicyError, match=r"the policies cannot be used \(MemoryError\)"):
        trial(allocates)


def test_a_trial_reports_what_the_process_did() -> None:
    trial(lambda: None)
    with pytest.raises(OwnPolicyError, match=r"a policy ends the process while it is loaded \(exit code 3\)"):
        trial(ends)


ALARMS = pytest.mark.usefixtures("alarm")


class Entered:
    """A process that calls two policies of a set; each runs `self.run`, and the calls of the second are tested."""

    def __init__(self, *, counts_cpu: bool = True, name: bytes = SET) -> None:
        self.guard = Guard(2)
        self.guard.accept(SET)
        self.guarding = Guarding(self.guard)
        self.guarding.enter(1, counts_cpu=counts_cpu)
        self.run: Callable[[], Iterator[Any]] = lambda: iter(())
        self.called = self.guarding.guarded(policies(lambda: self.run()), name)[1]  # noqa: PLW0108 -- `run` changes

    def call(self, run: Callable[[], Iterator[Any]]) -> list[Any]:
        self.run = run
        return called(self.called)


def policies(run: Callable[[], Iterator[Any]]) -> list[Policy]:
    @validates(POD)
    def check(_pod: Field, _ctx: AnyContext) -> Iterator[Any]:
        yield from run()

    return [Policy(policy_id, "", (check,)) for policy_id in ("acme/first", "acme/second")]


def called(policy: Policy, ctx: Any = None) -> list[Any]:
    # All that is used of a context.
    return list(policy.handlers[0].run(Field(None), ctx or SimpleNamespace(unhurried=nullcontext)))


def raising(error: BaseException) -> Callable[[], Iterator[Any]]:
    def run() -> Iterator[Any]:
        yield "before"
        raise error

    return run


@ALARMS
@pytest.mark.parametrize(
    ("error", "counts_cpu", "failures"),
    [
        (ValueError(), True, 1),
        (ValueError(), False, 1),
        (MemoryError(), False, 1),
        (SystemExit(), False, 1),
        (OutOfTimeError(), True, 1),
        # The review is handed over to a process that counts it.
        (OutOfTimeError(), False, 0),
        # Not an error of the policy.
        (KeyboardInterrupt(), True, 0),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_an_error_of_a_call_is_raised_and_charged_to_its_policy(
    error: BaseException,
    counts_cpu: bool,  # noqa: FBT001 -- a table's column
    failures: int,
) -> None:
    entered = Entered(counts_cpu=counts_cpu)

    with pytest.raises(type(error)):
        entered.call(raising(error))

    assert (entered.guard.failures(0), entered.guard.failures(1)) == (0, failures)
    # A death of the process after it is not charged.
    assert entered.guarding.died(os.getpid()) == ""


@ALARMS
def test_the_death_of_a_process_is_charged_to_the_policy_that_it_calls() -> None:
    entered = Entered()

    def dies() -> Iterator[Any]:
        yield entered.guarding.died(os.getpid() + 1)
        yield entered.guarding.died(os.getpid())
        yield entered.guard.failures(1)

    assert entered.call(dies) == ["", "acme/second", 4]


@ALARMS
def test_a_success_forgets_the_failures_of_its_policy() -> None:
    entered = Entered()
    entered.guard.failed(0)
    entered.guard.failed(1)

    assert entered.call(lambda: iter(("found",))) == ["found"]
    assert (entered.guard.failures(0), entered.guard.failures(1)) == (1, 0)


@ALARMS
def test_a_policy_that_is_off_is_not_called() -> None:
    entered = Entered()
    entered.guard.failed(1, MOST_FAILURES)

    assert entered.call(raising(ValueError())) == [Skip(SWITCHED_OFF)]
    assert entered.guard.failures(1) == MOST_FAILURES


@ALARMS
def test_a_process_with_another_set_calls_every_policy_and_counts_nothing() -> None:
    entered = Entered(name=OTHER)
    entered.guard.failed(1, MOST_FAILURES)

    with pytest.raises(ValueError, match="reason"):
        entered.call(raising(ValueError("reason")))
    assert entered.call(lambda: iter((entered.guarding.died(os.getpid()),))) == [""]
    assert entered.guard.failures(1) == MOST_FAILURES


@ALARMS
def test_the_limits_of_the_shadow_policy_file_count_no_failure() -> None:
    entered = Entered()
    entered.guard.failed(1, MOST_FAILURES)
    (limited,) = entered.guarding.limited(policies(raising(ValueError("reason")))[1:], SET)
    (spinning,) = entered.guarding.limited(policies(spins)[1:], SET)

    for policy, error in ((limited, ValueError), (spinning, PolicyTimeoutError)):
        with pytest.raises(error):
            called(policy)
    assert (entered.guard.failures(0), entered.guard.failures(1)) == (0, MOST_FAILURES)


def spins() -> Iterator[Any]:
    while True:
        yield from ()


def test_policies_are_called_without_limits_before_a_process_enters() -> None:
    guard = Guard(1)
    guard.accept(SET)
    (policy,) = Guarding(guard).guarded(policies(lambda: iter((signal.getitimer(signal.ITIMER_REAL)[0],)))[:1], SET)

    assert called(policy) == [0]


@ALARMS
def test_policies_that_are_switched_off_and_on_are_reported_once(clock: Clock) -> None:
    guarding = Guarding(Guard(1, clock))
    guarding.guarded(policies(lambda: iter(())), SET)
    assert list(guarding.switched()) == []

    guarding.guard.failed(1, MOST_FAILURES)
    assert (list(guarding.switched()), list(guarding.switched())) == ([("acme/second", True)], [])
    guarding.guard.failed(0, MOST_FAILURES)
    assert list(guarding.switched()) == [("acme/first", True)]
    clock.now += OFF_SECONDS
    assert list(guarding.switched()) == [("acme/first", False), ("acme/second", False)]


@ALARMS
def test_a_call_is_limited_in_cpu_time() -> None:
    entered = Entered()
    started = time.thread_time()
    with pytest.raises(PolicyTimeoutError):
        entered.call(spins)
    # A tick more, and what a busy machine adds.
    assert MOST_CPU_SECONDS <= time.thread_time() - started < MOST_CPU_SECONDS * 2


@ALARMS
def test_a_call_is_limited_in_memory_until_the_process_leaves() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    entered = Entered()

    # A mapping takes addresses, and no time to fill them.
    assert entered.call(lambda: iter((len(mmap.mmap(-1, MOST_BYTES // 2)),))) == [MOST_BYTES // 2]
    with pytest.raises(MemoryError):
        entered.call(lambda: iter((len(bytearray(MOST_BYTES * 5 // 4)),)))
    entered.guarding.leave()
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@ALARMS
def test_the_limits_end_a_tick_after_the_last_call() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    entered = Entered()
    for _ in range(2):
        entered.call(lambda: iter(()))
        assert resource.getrlimit(resource.RLIMIT_AS) != before
        signal.raise_signal(signal.SIGALRM)
        assert resource.getrlimit(resource.RLIMIT_AS) == before
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@ALARMS
def test_a_limit_of_the_process_is_not_raised() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    own = address_space() + MOST_BYTES // 4
    resource.setrlimit(resource.RLIMIT_AS, (own, hard))
    try:
        entered = Entered()
        assert entered.call(lambda: iter((resource.getrlimit(resource.RLIMIT_AS)[0],))) == [own]
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@ALARMS
def test_shared_work_is_not_limited(clock: Clock) -> None:
    """Values that later reviews use are computed to their end, and only the rest of the call counts."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    limits = Limits(clock, lambda: 0.0)
    around: list[str] = []

    @contextmanager
    def outer() -> Iterator[None]:
        around.append("enter")
        yield
        around.append("leave")

    def run(_subject: Any, _ctx: Any) -> Iterator[Any]:
        clock.now += MOST_SECONDS / 2
        with limits.paused(outer):
            yield resource.getrlimit(resource.RLIMIT_AS) == before
            yield signal.getitimer(signal.ITIMER_REAL)
            clock.now += MOST_SECONDS * 4
            signal.raise_signal(signal.SIGALRM)
        yield resource.getrlimit(resource.RLIMIT_AS) == before
        clock.now += MOST_SECONDS
        signal.raise_signal(signal.SIGALRM)
        yield "not reached"

    results: list[Any] = []

    def collected(subject: Any, ctx: Any) -> Iterator[Any]:
        for result in run(subject, ctx):
            results.append(result)
            yield result

    with pytest.raises(PolicyTimeoutError):
        limits.call(collected, None, None)  # type: ignore[arg-type]
    assert results == [True, (0, 0), False]
    assert around == ["enter", "leave"]
    limits.disarm()


@ALARMS
def test_a_policy_computes_shared_values_without_limits() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    entered = Entered()
    ctx = SimpleNamespace(unhurried=nullcontext)

    def computes() -> Iterator[Any]:
        yield resource.getrlimit(resource.RLIMIT_AS) == before
        with ctx.unhurried():
            yield resource.getrlimit(resource.RLIMIT_AS) == before

    entered.run = computes
    assert called(entered.called, ctx) == [False, True]


PAGE = resource.getpagesize()


@pytest.mark.parametrize(
    ("content", "starved", "size"),
    [(b"3000000000 2500000000 7", 2.5, 3_000_000_000 * PAGE), (b"", 0, 0), (b"x y z", 0, 0), (None, 0, 0)],
    ids=["figures", "empty", "no figures", "no file"],
)
def test_figures_that_the_kernel_does_not_give_are_0(
    monkeypatch: pytest.MonkeyPatch, content: bytes | None, starved: float, size: int
) -> None:
    def read(_path: str, _mode: str) -> io.BytesIO:
        if content is None:
            raise FileNotFoundError
        return io.BytesIO(content)

    monkeypatch.setattr(policy_guard, "open", read, raising=False)
    assert (seconds_starved(), address_space()) == (starved, size)


def test_a_server_counts_as_many_policies_as_a_set_may_have() -> None:
    guard = Guard(2)
    guard.accept(SET)
    for policy in range(MOST_POLICIES):
        guard.failed(policy, policy + 1)
    for process in range(2):
        guard.begin(process)
        guard.running(process, None)

    assert [guard.failures(policy) for policy in range(MOST_POLICIES)] == list(range(1, MOST_POLICIES + 1))
    assert guard.accepted == SET[:16]


def test_each_process_records_its_own_call() -> None:
    guard = Guard(2)
    for process in range(2):
        child = multiprocessing.get_context("fork").Process(target=guard.begin, args=(process,))
        child.start()
        child.join()
        guard.running(process, process + 5)
        assert (guard.died(child.pid or 0), guard.failures(process + 5)) == (process + 5, 4)


def starts_a_process() -> None:
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(0,)).start()


def threads() -> None:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


def refuses() -> None:
    raise PolicyFileError("a policy file is wrong")


def fails() -> None:
    raise KeyError("a secret")


@pytest.mark.parametrize(
    ("load", "error"),
    [
        (threads, "a policy starts a thread while it is loaded: remove this code"),
        (refuses, "a policy file is wrong"),
        (starts_a_process, "the policies cannot be used (AssertionError)"),
        (fails, "the policies cannot be used (KeyError)"),
    ],
)
def test_a_trial_reports_why_policies_are_refused(load: Callable[[], None], error: str) -> None:
    with pytest.raises(OwnPolicyError) as raised:
        trial(load)
    assert str(raised.value) == error


def test_a_trial_has_more_memory_than_a_call() -> None:
    trial(lambda: bytearray(MOST_BYTES))


def test_a_trial_can_be_asked_whether_it_is_over() -> None:
    reader, writer = os.pipe()
    started = Trial(lambda: os.read(reader, 1))
    assert not started.is_passed(0)
    os.write(writer, b"x")
    assert started.is_passed(60)
    for end in (reader, writer):
        os.close(end)


class Answer:
    """The end of a pipe from which nothing comes; remembers how long it was waited for."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def poll(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return False

    def close(self) -> None:
        """Nothing is open."""


def test_a_trial_is_waited_for_as_long_as_asked_and_no_longer_than_it_may_take(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_guard, "monotonic", clock)
    started, answer = Trial(hangs, 10), Answer()
    monkeypatch.setattr(started, "_answer", answer)
    for seconds in (0.25, 0.0):
        assert not started.is_passed(seconds)
    clock.now += 9.875
    assert not started.is_passed(0.25)
    clock.now += 0.25
    with pytest.raises(OwnPolicyError, match="not loaded within 10 s"):
        started.is_passed(0.25)
    assert answer.waits == [0.25, 0.0, 0.125, 0.0]


def test_a_trial_ends_if_the_server_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_guard, "_ORPHAN_SECONDS", 0.05)
    reader, writer = os.pipe()

    def starts() -> None:
        os.close(reader)
        Trial(lambda: time.sleep(60), 0.05)
        os.kill(os.getpid(), signal.SIGKILL)

    server = multiprocessing.get_context("fork").Process(target=starts)
    server.start()
    server.join()
    os.close(writer)
    # The trial has the last other end of the pipe.
    assert os.read(reader, 1) == b""
    os.close(reader)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM])
def test_a_trial_does_not_inherit_signal_handlers(number: signal.Signals) -> None:
    """The supervisor records signals, and a trial that did so would not end."""
    before = signal.signal(number, lambda *_: None)
    try:
        with pytest.raises(OwnPolicyError, match=rf"ends the process while it is loaded \(exit code -{number}\)"):
            trial(lambda: signal.raise_signal(number))
    finally:
        signal.signal(number, before)


def ends_the_server() -> None:
    os.kill(os.getppid(), signal.SIGTERM)
    hangs()


def test_a_signal_ends_a_trial_with_the_exit_code_of_a_shell() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as left:
        trial(ends_the_server)
    assert left.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before
    assert multiprocessing.active_children() == []
