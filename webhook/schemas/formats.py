"""The formats of texts that are checked; a text of any other format fits.

Source: kube-openapi `pkg/validation/strfmt` at the version of Kubernetes v1.36; which formats count:
apiextensions-apiserver v0.36 `pkg/apiserver/validation/formats.go`.
"""

from __future__ import annotations

import re
from typing import Final

_TIME: Final = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"(?:T(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:[.,][0-9]+)?"
    r"(?:Z|[+-](?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2})))",
    re.ASCII | re.IGNORECASE,
)
_DATE: Final = re.compile(r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})", re.ASCII)
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


def fits(name: str, text: str) -> bool:
    """Tell whether a text has the format of a name."""
    match name.replace("-", ""):
        case "datetime":
            return _is_date(_TIME.fullmatch(text))
        case "date":
            return _is_date(_DATE.fullmatch(text))
        case "uuid":
            return _UUID.fullmatch(text) is not None
        case "ipv4" | "ipv6" | "cidr":
            return _is_address(name, text)
    return True


def _is_date(found: re.Match[str] | None) -> bool:
    if found is None:
        return False
    import datetime as dt  # noqa: PLC0415 -- few objects hold a time, and it costs start-up time

    parts = {name: int(part) for name, part in found.groupdict().items() if part}
    try:
        dt.date(parts["year"] or 1, parts["month"], parts["day"])
    except ValueError:
        return False
    return parts.get("hour", 0) < 24 and parts.get("minute", 0) < 60 and parts.get("second", 0) < 60


def _is_address(name: str, text: str) -> bool:
    import ipaddress  # noqa: PLC0415 -- none of the bundled definitions needs it

    try:
        if name == "cidr":
            return bool(ipaddress.ip_network(text, strict=False)) and "/" in text
        return ipaddress.ip_address(text).version == int(name[-1])
    except ValueError:
        return False
