"""How authorities stand in a Secret: PEM beside a short JSON, one key of the Secret each."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any, Final

from gpugate.certs.authorities import Authorities, Previous
from gpugate.certs.checks import checked_authority
from gpugate.certs.errors import CertificateError
from gpugate.certs.pki import KeyPair, fingerprint, split

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORMAT: Final = 1
_STATE: Final = "state.json"


class CorruptSecretError(ValueError):
    """The Secret holds no authority to go on with; the text says which key of it, and what is wrong."""


def written(authorities: Authorities) -> dict[str, bytes]:
    """Return the content of the Secret."""
    state = {
        "format": _FORMAT,
        "promotedAt": authorities.promoted_at.isoformat(),
        "publishedAt": authorities.published_at.isoformat() if authorities.published_at else None,
        "previous": {fingerprint(each.certificate): _until(each) for each in authorities.previous},
        "pressing": authorities.pressing,
        "distrusted": authorities.distrusted,
        "answered": dict(authorities.answered),
    }
    data = {
        _STATE: json.dumps(state, indent=1).encode("ascii"),
        "active.crt": authorities.active.certificate,
        "active.key": authorities.active.key,
        "previous.crt": b"".join(p.certificate for p in authorities.previous),
    }
    if authorities.next is not None:
        data |= {"next.crt": authorities.next.certificate, "next.key": authorities.next.key}
    return data


def read(data: Mapping[str, bytes]) -> Authorities:
    """Read the content of the Secret; whether an authority expired is not looked at.

    A next authority that cannot be used is left out, because another can be made; so is what signed before.

    Raises:
        CorruptSecretError: there is no active authority in it that can be used, or the state is not ours.
    """
    active = _pair(data, "active")
    state = _state(data)
    try:
        following: KeyPair | None = _pair(data, "next")
    except CorruptSecretError:
        following = None
    try:
        return Authorities(
            active=active,
            promoted_at=_time(state["promotedAt"]),
            next=following,
            published_at=_time(state["publishedAt"]) if following and state["publishedAt"] else None,
            previous=_previous(data, state["previous"]),
            pressing=bool(state["pressing"]),
            distrusted=bool(state["distrusted"]),
            answered={str(kind): str(value) for kind, value in state["answered"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptSecretError(f"{_STATE} is not as gpugate writes it ({type(error).__name__})") from None


def _pair(data: Mapping[str, bytes], which: str) -> KeyPair:
    missing = [key for key in (f"{which}.crt", f"{which}.key") if not data.get(key)]
    if missing:
        raise CorruptSecretError(f"{' and '.join(missing)}: not there")
    pair = KeyPair(data[f"{which}.crt"], data[f"{which}.key"])
    try:
        return checked_authority(pair)
    except CertificateError as error:
        raise CorruptSecretError(f"{which}.crt, {which}.key: {error}") from None


def _state(data: Mapping[str, bytes]) -> dict[str, Any]:  # Any: the JSON edge
    try:
        found = json.loads(data.get(_STATE, b""))
    except ValueError:
        raise CorruptSecretError(f"{_STATE} is no JSON") from None
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise CorruptSecretError(f"{_STATE} has another format than {_FORMAT}: was it written by a newer gpugate?")
    return found


def _until(previous: Previous) -> dict[str, str]:
    return {"neededUntil": previous.needed_until.isoformat(), "leavesAt": previous.leaves_at.isoformat()}


def _previous(data: Mapping[str, bytes], until: Mapping[str, Mapping[str, str]]) -> tuple[Previous, ...]:
    found = {fingerprint(pem): pem for pem in split(data.get("previous.crt", b""))}
    # In the order of the state: oldest first.
    return tuple(
        Previous(found[each], _time(times["neededUntil"]), _time(times["leavesAt"]))
        for each, times in until.items()
        if each in found
    )


def _time(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("a time without a zone")
    return found
