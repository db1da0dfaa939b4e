"""Private keys are in the memory of who needs them, and nowhere else."""

from __future__ import annotations

import base64
import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from eventually import eventually
from kept.replica import Replica

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kept.cluster import KeptCluster

# At 1 the kernel starts no program that takes dumps either; nobody may raise a limit of 0.
NO_DUMPS = {"0", "1"}


@pytest.fixture
def replica(cluster: KeptCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replica]:
    """One whose temporary files are in `tmp`, and everything that it writes below `tmp_path`."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    started = Replica(cluster, tmp_path)
    assert eventually(started.ready)
    yield started
    started.stop()


def shapes(key_pem: bytes) -> set[bytes]:
    """Return every form in which a key could be told: its PEM by lines, DER, and the number alone."""
    key = serialization.load_pem_private_key(key_pem, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    number = key.private_numbers().private_value
    raw = number.to_bytes(32, "big")
    lines = {line for line in key_pem.splitlines() if not line.startswith(b"-----")}
    return lines | {raw, raw.hex().encode(), base64.b64encode(raw), str(number).encode()}


def told(replica: Replica, folder: Path) -> dict[str, bytes]:
    """Return everything that somebody else may get to see of a replica, by where it is."""
    files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    pages = {path: replica.get(path)[1].encode() for path in ("/metrics", "/readyz", "/healthz")}
    pids = [replica.pid, *replica.workers()]
    seen = {
        f"{what} of {pid}": Path(f"/proc/{pid}/{what}").read_bytes() for pid in pids for what in ("environ", "cmdline")
    }
    return files | pages | seen


def test_keys_are_nowhere_to_be_read(cluster: KeptCluster, replica: Replica, tmp_path: Path) -> None:
    # A search of what was not written yet would find nothing.
    assert eventually(lambda: "the next CA is published" in replica.log_file.read_text())
    secret = cluster.secret()
    canaries = {shape for name, content in secret.items() if name.endswith(".key") for shape in shapes(content)}
    found = told(replica, tmp_path)
    assert [where for where, content in found.items() if any(each in content for each in canaries)] == []
    assert [where for where, content in found.items() if re.search(b"PRIVATE KEY", content)] == []
    assert b"gpugate_certificate_management_healthy" in found["/metrics"]


def test_a_crash_leaves_no_dump(replica: Replica) -> None:
    for pid in (replica.pid, *replica.workers()):
        limits = Path(f"/proc/{pid}/limits").read_text()
        (soft_and_hard,) = re.findall(r"Max core file size +(\S+) +(\S+)", limits)
        assert set(soft_and_hard) <= NO_DUMPS


def test_only_the_keeper_has_keys_of_authorities(cluster: KeptCluster, replica: Replica) -> None:
    canaries = [shape for shape in shapes(cluster.secret()["active.key"]) if len(shape) >= 32]
    holding = [pid for pid in (replica.pid, *replica.workers()) if remembers(pid, canaries)]
    assert holding == [replica.keeper]


def remembers(pid: int, canaries: list[bytes]) -> bool:
    """Tell whether a process of ours has one of these in its memory, as far as it can be read."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as file:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            area, rights, *_ = line.split()
            if "rw" not in rights:
                continue
            begin, end = (int(bound, 16) for bound in area.split("-"))
            with contextlib.suppress(OSError):
                file.seek(begin)
                content = file.read(end - begin)
                if any(each in content for each in canaries):
                    return True
    return False
