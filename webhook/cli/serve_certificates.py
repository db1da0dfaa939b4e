"""The flags of `gpugate serve` by which it keeps certificates of its own authorities, and knows who may connect."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.webhook.cli import meant_flags
from gpugate.webhook.cli.durations import duration
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.cli.server_url import checked_url

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from gpugate.certs.authorities import Periods
    from gpugate.webhook.admission.options import Keeping

# Kubernetes mounts it into every Pod that has a ServiceAccount.
_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_SHORTEST_LEAF: Final = dt.timedelta(seconds=4)


class _Text(NamedTuple):
    flag: str
    default: str
    text: str


_TEXTS: Final = (
    _Text("--certificate-secret", "", "keep certificates of our own authorities, and these in this Secret"),
    _Text("--namespace", "", "namespace of this webhook (default: that of its Pod)"),
    _Text("--service", "gpugate", "Service that leads to it"),
    _Text("--webhook-configuration", "gpugate", "name of both webhook configurations"),
    _Text("--url", "", "where API servers reach it, if not through the Service: https://HOST:PORT"),
    _Text("--authority-life", "90d", "how long an authority is valid"),
    _Text("--authority-rotation", "30d", "how long one signs before the next does"),
    _Text("--certificate-life", "24h", "how long the server's certificate is valid"),
    _Text("--propagation", "10m", "how long an authority is published before it signs"),
)


def add(parser: argparse.ArgumentParser, environment: Callable[[str], str | None]) -> None:
    """Add the flags; `environment` returns the fallback of one by its name, such as `tls_cert`."""
    group = parser.add_argument_group("certificates")
    for each in _TEXTS:
        default = environment(_name(each.flag)) or each.default
        shown = f"{each.text} (default: {each.default})" if each.default else each.text
        group.add_argument(each.flag, metavar=each.flag.rsplit("-", 1)[-1].upper(), default=default, help=shown)
    meant_flags.add(group, environment)
    client_ca = environment("client_ca")
    group.add_argument(
        "--client-ca",
        type=Path,
        metavar="FILE",
        default=Path(client_ca) if client_ca else None,
        help="let in only who shows a certificate of these authorities, PEM (mutual TLS)",
    )
    group.add_argument(
        "--client-name",
        action="append",
        metavar="NAME",
        default=_listed(environment("client_name")),
        help="name in such a certificate that is let in; repeatable (default: kube-apiserver)",
    )


def keeping(args: argparse.Namespace, names: tuple[str, ...], *, in_cluster: bool) -> Keeping | None:
    """Return how certificates are kept, None where they are not; `names` are further names for them.

    Raises:
        UsageError: there is no cluster to keep them in, a duration is none, durations do not go together, the URL is
            none, or the namespace is not known.
    """
    if not args.certificate_secret:
        return None
    if args.tls_cert is not None:
        raise UsageError("--certificate-secret and --tls-cert exclude each other: a certificate is kept, or given")
    if not in_cluster:
        raise UsageError("--certificate-secret needs a cluster: run it in a Pod, or name one with --kubeconfig")
    from gpugate.webhook.admission.options import Keeping  # noqa: PLC0415 -- imports half the server

    return Keeping(
        secret=args.certificate_secret,
        namespace=args.namespace or _own_namespace(),
        service=args.service,
        configuration=args.webhook_configuration,
        url=checked_url(args.url),
        names=names,
        meant=meant_flags.meant(args),
        periods=_periods(args),
    )


def _periods(args: argparse.Namespace) -> Periods:
    from gpugate.certs.authorities import Periods  # noqa: PLC0415 -- imports cryptography

    found = Periods(
        authority=_duration(args, "--authority-life"),
        rotation=_duration(args, "--authority-rotation"),
        leaf=_duration(args, "--certificate-life"),
        propagation=_duration(args, "--propagation"),
    )
    if found.leaf < _SHORTEST_LEAF:
        # Its dates are whole seconds, and it is renewed after two thirds.
        raise UsageError(f"--certificate-life must be at least {_SHORTEST_LEAF.seconds}s")
    if found.rotation < found.propagation:
        raise UsageError("--authority-rotation must not be shorter than --propagation")
    # First it is the next one, then it signs, then what it signed has to end.
    if found.authority < 2 * found.rotation + found.leaf + found.propagation:
        raise UsageError(
            "--authority-life must be at least twice --authority-rotation, plus --certificate-life and --propagation"
        )
    return found


def _duration(args: argparse.Namespace, flag: str) -> dt.timedelta:
    given = getattr(args, _name(flag))
    with contextlib.suppress(ValueError):
        # Nothing lasts no time at all.
        if found := duration(given):
            return found
    variable = f"GPUGATE_{_name(flag).upper()}"
    where = f"{variable} (or {flag})" if os.environ.get(variable) == given else flag
    raise UsageError(f"{where}: {given!r} is no duration such as 30d, 24h, 10m or 90s")


def _own_namespace() -> str:
    try:
        return _NAMESPACE_FILE.read_text(encoding="utf-8").strip()
    except OSError:
        raise UsageError("--certificate-secret needs --namespace where this is no Pod") from None


def _listed(text: str | None) -> list[str] | None:
    return (text or "").replace(",", " ").split() or None


def _name(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")
