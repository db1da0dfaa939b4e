"""Policies from documents of the kind Policy.

A document has a `match`, which says for which objects it is, and `validations`: CEL expressions that are true for an object
without a finding. An expression that cannot be evaluated counts as a finding, because the object would otherwise pass. An
expression that depends on missing data is not evaluated, and the result says so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, cast

import msgspec

from gpugate.policies.cel.expressions import compile_expression
from gpugate.policies.cel.syntax import ExpressionError
from gpugate.policies.cel.syntax import parse as parse_expression
from gpugate.policies.cel.values import (
    BOOL,
    DOUBLE,
    INT,
    STRING,
    STRINGS,
    EvaluationError,
    NotKnownError,
    Scope,
)
from gpugate.policies.cel.variables import (
    GPU,
    environment,
    namespace_of,
    never_concerns_without_gpus,
    readers,
    unsent_field,
    used_by,
)
from gpugate.policies.engine.config import API_VERSION, ConfigError, near_misses, parse
from gpugate.policies.sdk import formats, objects
from gpugate.policies.sdk.concerns import EVERY_OBJECT
from gpugate.policies.sdk.field import UnknownValueError
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import MAY_DEMAND
from gpugate.policies.sdk.objects import Kind, Operation
from gpugate.policies.sdk.policy import Handler, Params, Policy
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.cel.expressions import Environment, Expression
    from gpugate.policies.cel.values import Type
    from gpugate.policies.cel.variables import Use
    from gpugate.policies.sdk.field import Field, Json, Path
    from gpugate.policies.sdk.policy import AnyContext

KIND: Final = "Policy"
MOST_DOCUMENTS: Final = 200
_MOST_VALIDATIONS: Final = 50
_LONGEST_TEXT: Final = 4_000
_LONGEST_MESSAGE: Final = 500
_ID: Final = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=_LONGEST_TEXT)]
Parameter = bool | int | float | str | list[str]


class DocumentError(ConfigError):
    """A document is refused.

    Attributes:
        document: which one, from 0.
        path: the field in it.
        at: the character in the text at the field, from 0; None where the whole field is meant.
        origin: where the documents are from.
    """

    def __init__(self, origin: str, document: int, error: ConfigError, at: int | None = None) -> None:
        super().__init__(error.path, error.message)
        self.origin = origin
        self.document = document
        self.at = at


class _ExpressionRefusedError(ConfigError):
    def __init__(self, path: Path, error: ExpressionError) -> None:
        super().__init__(path, str(error))
        self.at = error.at


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A section in which unknown keys are errors."""


class KindEntry(_Strict, frozen=True, kw_only=True):
    """A kind that gpugate does not know by its name.

    Attributes:
        apiVersion: the group and version, such as `example.com/v1`.
        kind: the name, such as `TrainingRun`.
        plural: the name in URLs of the API server, such as `trainingruns`.
        namespaced: whether objects of the kind are in namespaces.
    """

    api_version: Annotated[str, msgspec.Meta(pattern=r"^([a-z0-9.-]{1,253}/)?v[a-z0-9]{1,20}$")] = msgspec.field(
        name="apiVersion"
    )
    kind: Annotated[str, msgspec.Meta(pattern="^[A-Z][A-Za-z0-9]{0,62}$")]
    plural: Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9]{0,62}$")]
    namespaced: bool = True


class Match(_Strict, frozen=True, kw_only=True):
    """The objects that a policy evaluates.

    Attributes:
        kinds: names of kinds, such as `Pod`, or entries with apiVersion, kind and plural. `Pod` also means each Pod template.
        namespaces: names or patterns of namespaces. If set, objects without a namespace do not match.
        operations: CREATE, UPDATE or DELETE.
        conditions: expressions that must all be true; for other objects, the policy has no finding.
    """

    kinds: Annotated[tuple[str | KindEntry, ...], msgspec.Meta(min_length=1, max_length=50)]
    namespaces: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1, max_length=100)] = ("*",)
    operations: Annotated[tuple[Literal["CREATE", "UPDATE", "DELETE"], ...], msgspec.Meta(min_length=1)] = (
        "CREATE",
        "UPDATE",
    )
    conditions: Annotated[tuple[str, ...], msgspec.Meta(max_length=_MOST_VALIDATIONS)] = ()


class Validation(_Strict, frozen=True, kw_only=True):
    """One rule of a policy.

    Attributes:
        expression: a CEL expression that is true for an object without a finding.
        message: the message of the finding: what is wrong, in one clause.
        messageExpression: a CEL expression for the message; `message` is used if it cannot be evaluated.
        path: the field at which the finding is reported, such as `spec.containers[0].image`. Default: the object.
        why: the consequence of this finding. Default: `why` of the policy.
        fix: an imperative that says how to fix the finding.
    """

    expression: str
    message: Text
    message_expression: str = msgspec.field(name="messageExpression", default="")
    path: Annotated[str, msgspec.Meta(max_length=500)] = ""
    why: Annotated[str, msgspec.Meta(max_length=_LONGEST_TEXT)] = ""
    fix: Annotated[str, msgspec.Meta(max_length=_LONGEST_TEXT)] = ""


# One object, or several, of which the last is evaluated and the others exist.
ExampleObjects = dict[str, Any] | list[dict[str, Any]]  # Any: the JSON edge


class Examples(_Strict, frozen=True, kw_only=True):
    """Objects that show what a policy does.

    Attributes:
        allowed: objects without a finding of the policy. An entry may be a list: its last object is evaluated, the others
            exist.
        denied: objects with a finding of the policy, likewise.
    """

    allowed: tuple[ExampleObjects, ...] = ()
    denied: tuple[ExampleObjects, ...] = ()


class PolicyDocument(_Strict, frozen=True, kw_only=True):
    """A policy whose rules are CEL expressions.

    Attributes:
        id: an organisation and a name, such as `acme/no-h100-in-dev`.
        title: what is wrong with an object that has a finding, in one line.
        why: the consequence of a finding.
        instead: what to write instead.
        sources: documents on which the policy is based.
        mode: the default mode: off, audit, warn or enforce.
        match: the objects that the policy evaluates.
        params: names and default values of parameters, which the policy file can set. Expressions read `params.<name>`.
        validations: the rules.
        examples: allowed and denied objects.
    """

    id: Annotated[str, msgspec.Meta(pattern=_ID)]
    title: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[^\n]*$")]
    why: Text
    instead: str = ""
    sources: tuple[str, ...] = ()
    mode: Literal["off", "audit", "warn", "enforce"] | bool = "warn"
    match: Match
    params: dict[str, Parameter] = {}
    validations: Annotated[tuple[Validation, ...], msgspec.Meta(min_length=1, max_length=_MOST_VALIDATIONS)]
    examples: Examples = Examples()


class Example(NamedTuple):
    """An example of a policy: the objects, of which the last is evaluated, and whether it is allowed."""

    policy: str
    allowed: bool
    objects: Sequence[dict[str, Any]]  # Any: the JSON edge


def load_documents(documents: Iterable[Json], origin: str) -> list[Policy]:
    """Return the policies of some documents; each is checked and compiled.

    Args:
        documents: the decoded documents.
        origin: where they are from, for errors.

    Raises:
        DocumentError: one is not a Policy, an expression in it is invalid, or two have one id.
    """
    policies: list[Policy] = []
    ids: set[str] = set()
    for index, document in enumerate(documents):
        try:
            policies.append(_policy(_unique(_read(document), ids)))
        except ConfigError as error:
            raise DocumentError(origin, index, error, getattr(error, "at", None)) from None
    return policies


def _unique(document: PolicyDocument, ids: set[str]) -> PolicyDocument:
    if document.id in ids:
        raise ConfigError(("id",), f"two policies have the id {document.id}; rename one of them")
    if len(ids) >= MOST_DOCUMENTS:
        raise ConfigError((), f"more than {MOST_DOCUMENTS} policies")
    ids.add(document.id)
    return document


def examples_of(document: Json) -> tuple[Example, ...]:
    """Return the examples in a document that `load_documents` accepts."""
    read = _read(document)
    groups = ((True, read.examples.allowed), (False, read.examples.denied))
    return tuple(
        Example(read.id, allowed, entry if isinstance(entry, list) else [entry])
        for allowed, entries in groups
        for entry in entries
    )


def _read(document: Json) -> PolicyDocument:
    if not isinstance(document, dict):
        raise ConfigError((), f"the document is not a YAML mapping; start it with `apiVersion: {API_VERSION}`")
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(key) != wanted:
            raise ConfigError((key,), f"must be {wanted}")
    body = {key: value for key, value in document.items() if key not in {"apiVersion", "kind"}}
    validations = body.get("validations")
    for index, validation in enumerate(validations if isinstance(validations, list) else ()):
        # One by one first, because the parser's messages do not say which element is wrong.
        parse(validation, Validation, ("validations", index))
    for name, section in (("match", Match), ("examples", Examples)):
        if name in body:
            parse(body[name], section, (name,))
    return parse(body, PolicyDocument, ())


def _policy(document: PolicyDocument) -> Policy:
    if isinstance(document.mode, bool):
        if document.mode:
            raise ConfigError(("mode",), "must be off, audit, warn or enforce, not a boolean")
        mode = Stance.OFF
    else:
        mode = Stance[document.mode.upper()]
    kinds = tuple(_kind(entry, ("match", "kinds", index)) for index, entry in enumerate(document.match.kinds))
    params, types = _params(document)
    known = environment(types)
    conditions = tuple(
        _compiled(text, known, BOOL, ("match", "conditions", index))
        for index, text in enumerate(document.match.conditions)
    )
    rules = tuple(_rule(validation, known, index) for index, validation in enumerate(document.validations))
    expressions = [*conditions, *(rule.expression for rule in rules), *(r.message_of for r in rules if r.message_of)]
    use = used_by(expressions, known)
    _refuse_other_kinds(use, kinds)
    read = readers(kinds, types, stores_quantities=use.stores_quantities)
    if Operation.UPDATE.value in document.match.operations:
        _refuse_unsent(document)
    check = _Check(document.id, kinds, document.match.namespaces, conditions, rules, read)
    narrow = kinds == (objects.POD,) and never_concerns_without_gpus(conditions, [rule.expression for rule in rules])
    handler: Handler[Params] = Handler(
        mutates=False,
        kinds=kinds,
        params=params,
        mode=mode,
        operations=frozenset(Operation(name) for name in document.match.operations),
        needs=use.needs,
        tables=use.tables,
        concerns=MAY_DEMAND if narrow else EVERY_OBJECT,
        run=check.run,
    )
    return Policy(document.id, _doc(document), (handler,))


def _doc(document: PolicyDocument) -> str:
    """Write the documentation with the sections that every policy has."""
    sections = [f"{document.title.rstrip('.')}.", f"## Why is this bad?\n{document.why.strip()}"]
    if document.instead:
        sections.append(f"## Instead\n{document.instead.strip()}")
    if document.sources:
        sections.append("## Sources\n" + "\n".join(f"- {source}" for source in document.sources))
    return "\n\n".join(sections)


_BY_NAME: Final[Mapping[str, tuple[Kind, ...]]] = {
    name: tuple(kind for kind in vars(objects).values() if isinstance(kind, Kind) and kind.name == name)
    for name in {kind.name for kind in vars(objects).values() if isinstance(kind, Kind)}
}
# The kinds that a bare name means, of those that share it.
_CURRENT: Final = {
    kind.name: kind
    for kind in (
        objects.POD,
        objects.NODE_POOL,
        objects.NODE_CLAIM,
        objects.EC2_NODE_CLASS,
        objects.RESOURCE_CLAIM,
        objects.RESOURCE_CLAIM_TEMPLATE,
        objects.JOB,
    )
}


def _kind(entry: str | KindEntry, path: Path) -> Kind:
    if isinstance(entry, KindEntry):
        group, _, version = entry.api_version.rpartition("/")
        known = (
            k for k in _BY_NAME.get(entry.kind, ()) if k.group == group and version in k.versions and not k.subresource
        )
        return next(known, None) or Kind(group, (version,), entry.kind, entry.plural, entry.namespaced)
    kinds = [kind for kind in _BY_NAME.get(entry, ()) if not kind.subresource]
    if entry in _CURRENT:
        return _CURRENT[entry]
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        raise ConfigError(path, f"several kinds have the name {entry}; write apiVersion, kind and plural of the kind")
    near = near_misses(entry, _BY_NAME)
    meant = f"did you mean `{near[0]}`?" if near else "write apiVersion, kind and plural of the kind"
    raise ConfigError(path, f"unknown kind `{entry[:80]}`; {meant}")


_NAME: Final = re.compile(r"[a-z][A-Za-z0-9_]{0,62}")
_PARAMETERS: Final[Mapping[type, tuple[Any, Type]]] = {  # Any: types as values
    bool: (bool, BOOL),
    int: (int, INT),
    float: (float, DOUBLE),
    str: (str, STRING),
    list: (tuple[str, ...], STRINGS),
}


def _params(document: PolicyDocument) -> tuple[type[Params], dict[str, Type]]:
    """Return the struct of a policy's parameters, and their types in expressions."""
    fields: list[tuple[str, Any, Any]] = []  # Any: types as values
    types: dict[str, Type] = {}
    for name, default in document.params.items():
        if not _NAME.fullmatch(name):
            raise ConfigError(
                ("params", name), "invalid name: write a letter, then letters and digits, such as maxGpus"
            )
        kind, types[name] = _PARAMETERS[type(default)]
        fields.append((name, kind, tuple(default) if isinstance(default, list) else default))
    if not fields:
        return Params, types
    struct = cast(
        "type[Params]",
        msgspec.defstruct("CelParams", fields, bases=(Params,), frozen=True, forbid_unknown_fields=True, kw_only=True),
    )
    struct.__doc__ = "The parameters of a policy in CEL.\n\nAttributes:\n" + "".join(
        f"    {name}: read as `params.{name}`.\n" for name in types
    )
    return struct, types


def _compiled(text: str, known: Environment, gives: Type, path: Path) -> Expression:
    try:
        return compile_expression(text, known, gives=gives)
    except ExpressionError as error:
        raise _ExpressionRefusedError(path, error) from None


class _Rule(Struct, frozen=True):
    """A validation, compiled; `name` is its place in the document, `steps` lead to the field of its findings."""

    name: str
    expression: Expression
    message: str
    message_of: Expression | None
    steps: Path
    why: str
    fix: str


_STEP: Final = re.compile(r"""(?:^|\.)([A-Za-z_][A-Za-z0-9_-]*)|\[(\d{1,6})\]|\["([^"\\]{1,300})"\]""")


def _rule(validation: Validation, known: Environment, index: int) -> _Rule:
    path: Path = ("validations", index)
    expression = _compiled(validation.expression, known, BOOL, (*path, "expression"))
    text = validation.message_expression
    message_of = _compiled(text, known, STRING, (*path, "messageExpression")) if text else None
    steps = _steps(validation.path, (*path, "path"))
    return _Rule(
        f"validations[{index}]", expression, validation.message, message_of, steps, validation.why, validation.fix
    )


def _steps(text: str, path: Path) -> Path:
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise ConfigError(path, 'invalid: write a path such as `spec.containers[0]` or `metadata.labels["team"]`')
        name, number, quoted = match.groups()
        steps.append(int(number) if number else name or quoted)
        at = match.end()
    return tuple(steps)


def _refuse_other_kinds(use: Use, kinds: Sequence[Kind]) -> None:
    for group, _ in use.words:
        allowed = GPU[group].kinds
        other = next((kind for kind in kinds if kind not in allowed), None)
        if other is not None:
            names = " and ".join(kind.name for kind in allowed)
            message = f"`gpu.{group}` describes only {names}; write a separate policy for {other.name}"
            raise ConfigError(("match", "kinds"), message)


_EVERYWHERE: Final = ("*",)


def _refuse_unsent(document: PolicyDocument) -> None:
    """Refuse to read fields whose changes are not sent to the webhook, because they would pass without an evaluation."""
    texts: list[tuple[Path, str]] = [
        (("match", "conditions", index), text) for index, text in enumerate(document.match.conditions)
    ]
    texts += [(("validations", index, "expression"), v.expression) for index, v in enumerate(document.validations)]
    for path, text in texts:
        unsent = unsent_field(parse_expression(text))
        if unsent is not None:
            node, field = unsent
            message = (
                f"a change of only `{field}` is not sent to the webhook; read the spec, labels, annotations or "
                "ownerReferences, or match only CREATE"
            )
            raise _ExpressionRefusedError(path, ExpressionError(node.at, message))


class _Check(Struct, frozen=True):
    """The check of a policy."""

    id: str
    kinds: tuple[Kind, ...]
    namespaces: tuple[str, ...]
    conditions: tuple[Expression, ...]
    rules: tuple[_Rule, ...]
    readers: Mapping[str, Callable[[AnyContext], Any]]  # Any: values of CEL

    def run(self, subject: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
        """Evaluate a subject.

        Raises:
            UnknownValueError: an expression depends on the value of a placeholder; what is yielded before does not.
        """
        return iter(()) if self._passes(ctx) else self._results(subject, ctx)

    def _passes(self, ctx: AnyContext) -> bool:
        """Tell whether a subject has no finding, as most have, without the steps that say why not."""
        if self.namespaces != _EVERYWHERE:
            return False
        scope = Scope({}, self.readers, ctx)
        try:
            for condition in self.conditions:
                if condition.run(scope) is not True:
                    return True
            for rule in self.rules:
                if rule.expression.run(scope) is not True:
                    return False
        except (EvaluationError, NotKnownError, UnknownValueError):
            return False
        return True

    def _results(self, subject: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
        matches = self._is_in_namespace(ctx)
        if isinstance(matches, Skip):
            yield matches
        if matches is not True:
            return
        scope = Scope({}, self.readers, ctx)
        applies = self._applies(scope, subject)
        if not isinstance(applies, bool):
            yield applies
        placeholder: UnknownValueError | None = None
        for rule in self.rules if applies is True else ():
            try:
                finding = self._finding(rule, scope, subject)
            except UnknownValueError as unknown:
                placeholder = placeholder or unknown
                continue
            if finding is not None:
                yield finding
        if placeholder is not None:
            raise placeholder

    def _is_in_namespace(self, ctx: AnyContext) -> Skip | bool:
        """Tell whether the namespace of the object matches; a Skip where the namespace is not known."""
        if self.namespaces == _EVERYWHERE:
            return True
        try:
            namespace = namespace_of(self.kinds, ctx)
        except NotKnownError as error:
            return error.skip
        return any(formats.matches(pattern, namespace) for pattern in self.namespaces if namespace)

    def _applies(self, scope: Scope, subject: Field) -> Violation | Skip | bool:
        """Tell whether all conditions hold: a false one wins over one that cannot be evaluated.

        Raises:
            UnknownValueError: that depends on the value of a placeholder.
        """
        problem: Violation | Skip | UnknownValueError | None = None
        for index, condition in enumerate(self.conditions):
            try:
                if condition.run(scope) is not True:
                    return False
            except EvaluationError as error:
                problem = problem or _failed(self.id, f"match.conditions[{index}]", error, subject)
            except NotKnownError as error:
                problem = error.skip if not isinstance(problem, UnknownValueError) else problem
            except UnknownValueError as error:
                problem = error
        if isinstance(problem, UnknownValueError):
            raise problem
        return True if problem is None else problem

    def _finding(self, rule: _Rule, scope: Scope, subject: Field) -> Violation | Skip | None:
        try:
            if rule.expression.run(scope) is True:
                return None
        except EvaluationError as error:
            return _failed(self.id, rule.name, error, subject)
        except NotKnownError as error:
            return error.skip
        field = subject[rule.steps] if rule.steps else subject
        return Violation(field.path, _message(rule, scope), hint=rule.fix, why=rule.why)


def _message(rule: _Rule, scope: Scope) -> str:
    """Return the message of a finding, on one line."""
    if rule.message_of is None:
        return rule.message
    try:
        text = rule.message_of.run(scope)
    except (EvaluationError, NotKnownError, UnknownValueError):
        return rule.message
    return " ".join(text[:_LONGEST_MESSAGE].split()) or rule.message


def _failed(policy: str, where: str, error: EvaluationError, subject: Field) -> Violation:
    """Return the finding of an expression that has no value for an object."""
    return Violation(
        subject.path,
        f"{where} cannot be evaluated: {error}",
        hint=f"correct the object, or the expression in policy {policy}: test optional fields with `has(...)`",
        why="A rule that cannot be evaluated would let every object pass.",
    )
