from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from operate.fake_installation import SECRETS

from gpugate.certs.plan import DISTRUST, ROTATE

if TYPE_CHECKING:
    from collections.abc import Callable

    from operate.fake_installation import Cluster


def annotations(cluster: Cluster) -> dict[str, str]:
    found: dict[str, str] = cluster.store.all(SECRETS)[0]["metadata"]["annotations"]
    return found


@pytest.mark.parametrize(("flags", "annotation"), [((), ROTATE), (("--distrust",), DISTRUST)])
def test_it_is_asked_for_by_an_annotation_with_a_new_value(
    installed: Cluster, webhook: Callable[..., Any], flags: tuple[str, ...], annotation: str
) -> None:
    installed.secret(kept="yes")
    values = []
    for _ in range(2):
        assert webhook("rotate", "--yes", *flags).code == 0
        values.append(annotations(installed)[annotation])

    assert set(annotations(installed)) == {"kept", annotation}
    assert values[0] != values[1]


def test_there_is_no_secret(webhook: Callable[..., Any]) -> None:
    ran = webhook("rotate", "--yes")

    assert (ran.code, "Secret gpugate/gpugate-certificates does not exist" in ran.err) == (1, True)


def test_nobody_may_write_it(installed: Cluster, webhook: Callable[..., Any]) -> None:
    installed.secret()
    installed.forbidden.add("secrets")

    ran = webhook("rotate", "--yes")

    assert (ran.code, "secrets is forbidden" in ran.err) == (4, True)


class Keeper:
    """Answers a request a step each time that somebody waits for it."""

    def __init__(self, cluster: Cluster, steps: list[dict[str, Any]]) -> None:
        self._cluster, self._steps = cluster, steps

    def __call__(self, _: float) -> None:
        secret = self._cluster.store.all(SECRETS)[0]
        state = json.loads(base64.b64decode(secret["data"]["state.json"]))
        asked = {k: v for k, v in secret["metadata"]["annotations"].items() if k in {ROTATE, DISTRUST}}
        step = self._steps.pop(0)
        previous = step.pop("previous", b"")
        state |= {"answered": asked, **step}
        data = {
            "state.json": base64.b64encode(json.dumps(state).encode()).decode(),
            "previous.crt": base64.b64encode(previous).decode(),
        }
        self._cluster.store.put(SECRETS, {**secret, "data": {**secret["data"], **data}})


@pytest.mark.parametrize(
    ("flags", "steps", "told"),
    [
        (
            (),
            [{"pressing": True}, {"pressing": False}],
            ["the leader has accepted the request", "the next CA signs"],
        ),
        (
            ("--distrust",),
            [{"pressing": True}, {"pressing": False, "previous": b"old"}, {"pressing": False}],
            [
                "the leader has accepted the request",
                "the next CA signs",
                "the previous CAs are no longer trusted",
            ],
        ),
    ],
    ids=["rotate", "distrust"],
)
def test_each_step_is_told(
    installed: Cluster,
    webhook: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    *,
    flags: tuple[str, ...],
    steps: list[dict[str, Any]],
    told: list[str],
) -> None:
    installed.secret()
    monkeypatch.setattr("gpugate.webhook.operate.rotation.time.sleep", Keeper(installed, steps))

    ran = webhook("rotate", "--yes", "--wait", *flags)

    assert ran.code == 0
    assert ran.out.splitlines()[-len(told) :] == told


def test_nobody_takes_it_up(installed: Cluster, webhook: Callable[..., Any]) -> None:
    installed.secret()

    ran = webhook("rotate", "--yes", "--wait", "--timeout", "0")

    assert (ran.code, "see the log of the leader" in ran.err) == (1, True)
