"""The definition of a policy: a check, a mutation or both, for some kinds of objects."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, cast, overload

import msgspec
from msgspec import field

from gpugate.policies.sdk.concerns import EVERY_OBJECT
from gpugate.policies.sdk.findings import Patch, Skip, Stance, Violation
from gpugate.policies.sdk.objects import Operation, Request, Wrapper
from gpugate.policies.sdk.structs import MutableStruct, Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from types import ModuleType

    from gpugate.policies.sdk.concerns import Concern
    from gpugate.policies.sdk.facts import Facts, Need
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.platform import Platform, Target


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The base class of the parameters of a policy."""


T = TypeVar("T")
P = TypeVar("P", bound=Params)
P_co = TypeVar("P_co", bound=Params, covariant=True)


def _never(_platform: Platform) -> bool:
    return False


class Table(Struct, Generic[T], frozen=True):
    """A table of data that is loaded when a policy that reads it is bound, never in a request.

    `needs` are the kinds of cluster data that extend the table, on platforms for which `extended` is true.
    """

    name: str
    load: Callable[[], T]
    needs: tuple[Need, ...] = ()
    extended: Callable[[Platform], bool] = _never


# Not frozen, because a frozen one takes three times as long to create, and each policy and request creates one.
class Context(MutableStruct, Generic[P_co]):
    """The subject that a policy evaluates, and the data that it may use.

    `subject` is the object or Pod template; `wrapper` is the workload around a Pod template, else None. Time spent in
    `unhurried`, on values that other requests share, does not count towards the time limit of this request.
    """

    params: P_co
    subject: Field
    wrapper: Wrapper | None
    request: Request
    facts: Facts
    platform: Platform
    target: Target
    tables: Mapping[str, object] = field(default_factory=dict)
    memo: dict[object, object] = field(default_factory=dict)
    unhurried: Callable[[], AbstractContextManager[None]] = nullcontext

    def derived(self, compute: Callable[[Field, Context[Params]], T]) -> T:
        """Return the value that `compute` derives from the subject, computed once for all policies."""
        derived = self.memo.get(compute, self)
        if derived is self:
            derived = self.memo[compute] = compute(self.subject, self)
        return cast("T", derived)

    def table(self, table: Table[T]) -> T:
        """Return a table that the policy declared."""
        return cast("T", self.tables[table.name])


AnyContext: TypeAlias = Context[Params]
Validate: TypeAlias = "Callable[[Field, Context[P]], Iterator[Violation | Skip]]"
Mutate: TypeAlias = "Callable[[Field, Context[P]], Iterator[Patch | Violation | Skip]]"


# The key of a policy's entry that holds its parameters.
PARAMETERS_KEY: Final = "params"


class Handler(Struct, Generic[P], frozen=True):
    """One function of a policy file with the arguments of its decorator.

    `run` gets a `Context[P]`, where P is `params`; the engine guarantees this, because it parses the configuration with
    `params`. It yields violations and skips, and patches if it mutates. None of its findings exceeds `at_most`.

    `convention` is the key of the configuration with names that each platform chooses for itself: the policy's
    parameters (`PARAMETERS_KEY`), or the workload classes (`platform.CLASSES_KEY`). Until the platform sets it,
    findings about these names are at most warnings, and a mutation does nothing. It is empty if the policy does not
    depend on such names.
    """

    mutates: bool
    kinds: tuple[Kind, ...]
    params: type[P]
    mode: Stance
    operations: frozenset[Operation]
    needs: tuple[Need, ...]
    tables: tuple[Table[Any], ...]  # Any: tables have different types
    concerns: Concern
    run: Callable[[Field, Context[P]], Iterator[Patch | Violation | Skip]]
    at_most: Stance = Stance.ENFORCE
    convention: str = ""

    def __call__(self, subject: Field, ctx: Context[P]) -> Iterator[Patch | Violation | Skip]:
        """Evaluate a subject."""
        return self.run(subject, ctx)


WRITES = frozenset({Operation.CREATE, Operation.UPDATE})


@overload
def validates(
    *kinds: Kind,
    mode: Stance = ...,
    operations: frozenset[Operation] = ...,
    needs: tuple[Need, ...] = ...,
    tables: tuple[Table[Any], ...] = ...,
    concerns: Concern = ...,
    at_most: Stance = ...,
    convention: str = ...,
) -> Callable[[Validate[Params]], Handler[Params]]: ...
@overload
def validates(
    *kinds: Kind,
    params: type[P],
    mode: Stance = ...,
    operations: frozenset[Operation] = ...,
    needs: tuple[Need, ...] = ...,
    tables: tuple[Table[Any], ...] = ...,
    concerns: Concern = ...,
    at_most: Stance = ...,
    convention: str = ...,
) -> Callable[[Validate[P]], Handler[P]]: ...
def validates(  # type: ignore[misc] # the overloads say what each call gives  # noqa: PLR0913 -- a form with a line for each
    *kinds: Kind,
    params: type[Params] = Params,
    mode: Stance = Stance.ENFORCE,
    operations: frozenset[Operation] = WRITES,
    needs: tuple[Need, ...] = (),
    tables: tuple[Table[Any], ...] = (),
    concerns: Concern = EVERY_OBJECT,
    at_most: Stance = Stance.ENFORCE,
    convention: str = "",
) -> Callable[[Validate[Params]], Handler[Params]]:
    """Make a function the check of a policy.

    Args:
        kinds: the kinds it evaluates; a Pod policy also evaluates every Pod template of a workload.
        params: the type its parameters are parsed into.
        mode: the shipped mode.
        operations: the operations that it evaluates.
        needs: the kinds it looks up, with the fields it reads.
        tables: the tables it reads.
        concerns: a condition that holds for every object with a finding or change; for a Pod policy, for every such
            Pod.
        at_most: the highest stance of its findings, even if the policy's mode is higher.
        convention: the key of the configuration that sets the platform's own names; see `Handler`.
    """

    def wrap(run: Validate[Params]) -> Handler[Params]:
        return Handler(False, kinds, params, mode, operations, needs, tables, concerns, run, at_most, convention)  # noqa: FBT003 -- `mutates`

    return wrap


@overload
def mutates(
    *kinds: Kind,
    mode: Stance = ...,
    operations: frozenset[Operation] = ...,
    needs: tuple[Need, ...] = ...,
    tables: tuple[Table[Any], ...] = ...,
    concerns: Concern = ...,
    convention: str = ...,
) -> Callable[[Mutate[Params]], Handler[Params]]: ...
@overload
def mutates(
    *kinds: Kind,
    params: type[P],
    mode: Stance = ...,
    operations: frozenset[Operation] = ...,
    needs: tuple[Need, ...] = ...,
    tables: tuple[Table[Any], ...] = ...,
    concerns: Concern = ...,
    convention: str = ...,
) -> Callable[[Mutate[P]], Handler[P]]: ...
def mutates(  # type: ignore[misc] # the overloads say what each call gives  # noqa: PLR0913 -- a form with a line for each
    *kinds: Kind,
    params: type[Params] = Params,
    mode: Stance = Stance.ENFORCE,
    operations: frozenset[Operation] = WRITES,
    needs: tuple[Need, ...] = (),
    tables: tuple[Table[Any], ...] = (),
    concerns: Concern = EVERY_OBJECT,
    convention: str = "",
) -> Callable[[Mutate[Params]], Handler[Params]]:
    """Make a function the mutation of a policy; the arguments are those of `validates`.

    A mutation adds only missing fields, and yields nothing for an object that it has already changed.
    """

    def wrap(run: Mutate[Params]) -> Handler[Params]:
        return Handler(
            mutates=True,
            kinds=kinds,
            params=params,
            mode=mode,
            operations=operations,
            needs=needs,
            tables=tables,
            concerns=concerns,
            run=run,
            convention=convention,
        )

    return wrap


class Policy(Struct, frozen=True):
    """A policy of the catalogue; id and documentation come from its file."""

    id: str
    doc: str
    handlers: tuple[Handler[Any], ...]  # Any: policies of one catalogue have different parameters

    @property
    def title(self) -> str:
        """The first line of the documentation."""
        return self.doc.partition("\n")[0].rstrip(".")

    @property
    def mode(self) -> Stance:
        """The shipped mode."""
        return self.handlers[0].mode

    @property
    def conventions(self) -> frozenset[str]:
        """The keys of the configuration with names that each platform chooses; see `Handler.convention`."""
        return frozenset(handler.convention for handler in self.handlers if handler.convention)

    @property
    def params(self) -> type[Params]:
        """The type of the parameters."""
        return self.handlers[0].params

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Every kind the policy evaluates."""
        return tuple(dict.fromkeys(kind for handler in self.handlers for kind in handler.kinds))


def policy_in(module: ModuleType) -> Policy:
    """Read the policy that a file defines.

    Raises:
        TypeError: the file defines none, or its functions disagree on mode or parameters.
    """
    handlers = tuple(value for value in vars(module).values() if isinstance(value, Handler))
    if not handlers or len({(h.mode, h.params) for h in handlers}) != 1:
        raise TypeError(f"{module.__name__}: needs @validates or @mutates, all with one mode and one params type")
    family, name = module.__name__.split(".")[-2:]
    return Policy(f"{family}/{name.replace('_', '-')}", (module.__doc__ or "").strip(), handlers)
