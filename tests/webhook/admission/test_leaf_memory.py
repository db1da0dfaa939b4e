from __future__ import annotations

import os

import pytest
from certificate_files import OTHER, PAIR

from gpugate.certs.pki import KeyPair
from gpugate.webhook.admission.certificate import LeafMemory

CONTENT = PAIR.certificate + PAIR.key


@pytest.fixture
def memory() -> LeafMemory:
    return LeafMemory()


def test_there_is_none_at_first(memory: LeafMemory) -> None:
    assert (memory.version, memory.get()) == (0, None)


def test_the_last_pair_is_returned(memory: LeafMemory) -> None:
    for pair in (PAIR, OTHER):
        memory.put(pair)
    assert (memory.version, memory.get()) == (2, OTHER)


def test_a_shorter_pair_replaces_a_longer_one(memory: LeafMemory) -> None:
    memory.put(PAIR)
    memory.put(KeyPair(b"c", b"k"))
    assert memory.get() == KeyPair(b"c", b"k")


def test_a_pair_that_does_not_fit_keeps_the_last_one(memory: LeafMemory) -> None:
    memory.put(PAIR)
    with pytest.raises(ValueError, match="do not fit"):
        memory.put(KeyPair(b"x" * 65536, b""))
    assert (memory.version, memory.get()) == (1, PAIR)


@pytest.mark.parametrize("written", range(0, 48 + len(CONTENT), 97))
def test_an_unfinished_write_is_ignored(memory: LeafMemory, written: int) -> None:
    complete = LeafMemory()
    for pair in (OTHER, PAIR):
        complete.put(pair)
    memory.put(OTHER)
    memory._memory[:written] = complete._memory[:written]
    assert memory.get() in {None, OTHER}


def test_after_a_write_that_stopped_the_next_one_counts(memory: LeafMemory) -> None:
    memory.put(PAIR)
    memory._memory[100] ^= 1
    torn = memory.get()
    memory.put(OTHER)
    assert (torn, memory.get()) == (None, OTHER)


def test_no_process_reads_half_of_a_pair() -> None:
    memory, done = LeafMemory(), LeafMemory()
    child = os.fork()
    if not child:
        for number in range(20_000):
            memory.put((PAIR, OTHER)[number % 2])
        done.put(PAIR)
        os._exit(0)
    seen = set()
    while not done.version:
        pair = memory.get()
        seen.add("none" if pair is None else "a pair" if pair in {PAIR, OTHER} else "something else")
    os.waitpid(child, 0)
    assert "something else" not in seen
    assert (memory.version, memory.get()) == (20_000, OTHER)


def test_keys_are_not_shown(memory: LeafMemory) -> None:
    memory.put(PAIR)
    assert "PRIVATE KEY" not in repr(memory) + repr(memory.get())
