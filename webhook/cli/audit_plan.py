"""What `gpugate audit` can find wrong before it looks at a cluster: flags that do not fit, files that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.webhook.audit.cost.prices import Prices, read_price_table
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.report import audit_read

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Plan:
    """What was read of files that were named.

    Attributes:
        prices: what GPUs cost; None when that is not asked for.
        earlier: the audit to compare with.
        remarks: sentences about these files.
    """

    prices: Prices | None
    earlier: bytes | None
    remarks: tuple[str, ...] = ()


def plan(args: argparse.Namespace) -> Plan:
    """Check flags against each other, and read the files that they name.

    Raises:
        GpugateError: they contradict each other; a file cannot be read, or does not hold what it should.
    """
    _refuse(args)
    earlier = _earlier(args.compare) if args.compare else None
    if args.no_cost:
        return Plan(None, earlier)
    catalogue = load_instance_types()
    if args.price_table is None:
        return Plan(Prices(catalogue), earlier)
    table = read_price_table(args.price_table, catalogue.positions)
    return Plan(Prices(catalogue, table.prices, table.source), earlier, table.remarks)


def _refuse(args: argparse.Namespace) -> None:
    reasons = {
        "--write-reports writes into a cluster: leave out --from": args.write_reports and args.dump,
        "--write-reports keeps what every policy found: leave out --select and --ignore": (
            args.write_reports and (args.select or args.ignore)
        ),
        "--complete-context is about a dump: name it with --from": args.complete_context and not args.dump,
        "--anonymize takes out names, which --write-reports and --write-exemptions need: leave one of them out": (
            args.anonymize and (args.write_reports or args.write_exemptions)
        ),
        "--salt is for --anonymize: add it": args.salt is not None and not args.anonymize,
        "--price-table and --no-cost contradict each other: leave one of them out": args.price_table and args.no_cost,
        "--write-exemptions needs --exemption-owner NAME: who answers for them": (
            args.write_exemptions and not args.exemption_owner.strip()
        ),
    }
    for reason, applies in reasons.items():
        if applies:
            raise UsageError(reason)


def _earlier(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"--compare {path}: {(error.strerror or 'cannot be read').lower()}") from None
    try:
        audit_read.read(data)
    except audit_read.AuditDocumentError as error:
        raise UsageError(f"--compare {path}: {error}") from None
    return data
