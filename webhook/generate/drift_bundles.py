"""Whether webhook entries trust the authorities that they should, and no others."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from gpugate.certs.pki import common_name, fingerprint, split, validity
from gpugate.webhook.generate.drift_reasons import Drift, Reason, where

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator

    from gpugate.webhook.generate.coverage import Object

_KEEPER = "the leading replica mends it within a minute: if it does not, see its log (kubectl logs)"
_PUBLISH = f"{_KEEPER}; with certificates of your own, write their authority into every caBundle"


def bundle_drift(configurations: Iterable[Object], bundle: bytes, now: dt.datetime) -> Iterator[Drift]:
    """Yield what is wrong with the `caBundle` of every entry.

    Args:
        configurations: those of the webhook.
        bundle: the authorities that each should hold, PEM; empty where they are not known.
        now: the time, with its zone.
    """
    wanted = {fingerprint(each): each for each in split(bundle)}
    held: dict[frozenset[str], str] = {}
    for configuration in configurations:
        for entry in configuration.get("webhooks") or ():
            place = where(configuration, entry)
            found = {fingerprint(each): each for each in split(decoded(entry))}
            yield from _wrong(place, found, wanted, now)
            if found:
                held.setdefault(frozenset(found), place)
    if not wanted and len(held) > 1:
        _, *rest = held.values()
        text = f"trusts other authorities than {next(iter(held.values()))}"
        yield from (Drift(Reason.BUNDLES_DIFFER, each, text, _PUBLISH) for each in rest)


def decoded(entry: Object) -> bytes:
    """Return the `caBundle` of an entry, empty where it has none that can be read."""
    try:
        return base64.b64decode((entry.get("clientConfig") or {}).get("caBundle") or "", validate=True)
    except binascii.Error:
        return b""


def _wrong(place: str, found: dict[str, bytes], wanted: dict[str, bytes], now: dt.datetime) -> Iterator[Drift]:
    if not found:
        text = "caBundle holds no certificate: the API server trusts no answer of the webhook"
        yield Drift(Reason.BUNDLE_EMPTY, place, text, _PUBLISH)
        return
    if all(validity(each)[1] <= now for each in found.values()):
        last = max(validity(each)[1] for each in found.values())
        text = f"every authority in caBundle expired, the last on {last:%Y-%m-%d %H:%M} UTC"
        yield Drift(Reason.BUNDLE_EXPIRED, place, text, _PUBLISH)
    if not wanted:
        return
    lacking = [pem for key, pem in wanted.items() if key not in found and validity(pem)[1] > now]
    if lacking:
        text = f"caBundle lacks {_named(lacking)}: what is signed by it is not trusted"
        yield Drift(Reason.BUNDLE_INCOMPLETE, place, text, _PUBLISH)
    foreign = [pem for key, pem in found.items() if key not in wanted]
    if foreign:
        text = f"caBundle holds {_named(foreign)}, which is not ours: who has its key can answer in our place"
        yield Drift(Reason.BUNDLE_FOREIGN, place, text, _PUBLISH)


def _named(certificates: list[bytes]) -> str:
    names = [
        f"the authority {common_name(pem) or 'without a name'!r} (SHA-256 {fingerprint(pem)[:12]})"
        for pem in certificates
    ]
    return " and ".join(names)
