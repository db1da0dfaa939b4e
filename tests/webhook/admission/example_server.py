"""The admission front with a gate for every example of the library, told apart by the uid of the review.

`python example_server.py CA_FILE` prints `ready: URL`. Everything but the choice of the gate is what `gpugate serve` runs.
"""

from __future__ import annotations

import datetime as dt
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import gpugate.policies
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.admission.app import create_app
from gpugate.webhook.admission.certificate import identity
from gpugate.webhook.admission.front import server as front
from gpugate.webhook.admission.gate import Answer, Gate
from gpugate.webhook.admission.options import ServeOptions
from gpugate.webhook.check.examples import read_example
from gpugate.webhook.check.facts import RunFacts

if TYPE_CHECKING:
    from gpugate.policies.engine.evaluate import Phase

ROOT = Path(gpugate.policies.__file__).parent
UID = re.compile(rb'"uid": ?"([^"]+)"')


def now() -> dt.datetime:
    return dt.datetime(2026, 11, 21, tzinfo=dt.UTC)


class ExampleGate(Gate):
    def __init__(self) -> None:
        super().__init__(
            bind(CATALOG, read_example("", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n").config),
            RunFacts(()),
            now,
        )
        self._gates: dict[str, Gate] = {}

    def answer(self, phase: Phase, body: bytes) -> Answer:
        found = UID.search(body)
        assert found is not None
        name = found[1].decode()
        if name not in self._gates:
            example = read_example(name, (ROOT / name).read_text())
            facts = RunFacts((*example.context, example.request), complete=example.complete)
            self._gates[name] = Gate(bind(CATALOG, example.config), facts, now)
        return self._gates[name].answer(phase, body)


def main() -> None:
    gate = ExampleGate()
    options = ServeOptions(host="127.0.0.1", port=0, ca_file=Path(sys.argv[1]))
    listener = front.listen(options.host, options.port)

    def announce() -> None:
        sys.stdout.write(f"ready: https://127.0.0.1:{listener.getsockname()[1]}\n")
        sys.stdout.flush()

    tls = identity(options, dt.datetime.now(tz=dt.UTC))
    front.run(gate, create_app(gate), listener, tls.context, announce)


if __name__ == "__main__":
    main()
