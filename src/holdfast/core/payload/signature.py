"""A task's signature: which arguments it takes, of which types, and what it gives.

Owns the check of a call when it is sent, and the way back from stored JSON to arguments in
the worker. Both are one body: a call is checked by decoding what will be stored, so what
passes here is what the function will get.

Annotations are resolved at definition if they can be; otherwise, as with a class defined
further down the module, when they are first needed.
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final, Union

from holdfast.core.errors import ConfigError, PayloadError
from holdfast.core.payload.codec import (
    DEFAULT_LIMIT,
    ArrayDecoder,
    Raw,
    decoder,
    encode_special,
    split_array,
    split_object,
    unsupported,
)
from holdfast.core.payload.round_trip import OpenType, ValueChange, find_bytes_as_text
from holdfast.core.result import TaskResult

__all__ = ["Arguments", "Signature", "argument_path"]

Decode = Callable[[Raw], Any]
Arguments = tuple[list[Any], dict[str, Any]]

_GENERATORS: Final = frozenset({collections.abc.Generator, collections.abc.AsyncGenerator})
_AWAITABLES: Final = frozenset({collections.abc.Coroutine, collections.abc.Awaitable})
_MAY_HOLD_BYTES: Final = (bytes, bytearray, memoryview, list, tuple, dict)
_REST: Final = "*"
_OTHERS: Final = "**"
_KEYWORD: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


@dataclass(frozen=True, slots=True)
class _Types:
    """The decoders of a resolved signature."""

    positional: tuple[Decode, ...]
    together: ArrayDecoder | None
    """All positional arguments in one go, where that can be done."""
    keyword: Mapping[str, Decode]
    rest: Decode | None
    """For `*args`."""
    others: Decode | None
    """For `**kwargs`."""
    result: Callable[[str | bytes | Raw], Any]
    kinds: Mapping[str, Any]
    """The annotations of the parameters; "*" and "**" are those of `*args` and `**kwargs`."""
    result_kind: Any
    open: Mapping[str, OpenType]
    """The parameters whose annotation leaves a type open."""
    open_result: OpenType | None

    def of(self, name: str) -> Decode:
        """The decoder of a keyword argument that `_check_names` let pass."""
        decode = self.keyword.get(name, self.others)
        assert decode is not None, name
        return decode


class Signature:
    """The signature of one task's function, prepared for fast checks."""

    __slots__ = (
        "_function",
        "_keyword",
        "_parameters",
        "_positional",
        "_required",
        "_rest",
        "_types",
        "name",
        "streams",
    )

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.name = name
        self._function = function
        parameters = self._parameters = list(inspect.signature(function).parameters.values())
        self._positional = tuple(p.name for p in parameters if p.kind in _POSITIONAL)
        self._keyword = frozenset(p.name for p in parameters if p.kind in _KEYWORD)
        self._required = tuple(
            (p.name, index if p.kind in _POSITIONAL else -1)
            for index, p in enumerate(parameters)
            if p.default is p.empty and p.kind in (*_POSITIONAL, *_KEYWORD)
        )
        self._rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        self.streams = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
        """True for a generator: what it yields is output, what it returns is the result."""
        self._types: _Types | None = None
        try:
            self._types = self._resolve()
        except NameError:
            pass  # a forward reference; asked again when it is needed

    @property
    def resolved(self) -> bool:
        """Whether all annotations have been resolved."""
        return self._types is not None

    @property
    def result_kind(self) -> Any:
        """The type of the value that the function gives."""
        return (self._types or self._decoders()).result_kind

    def parameter(self, place: int | str) -> tuple[str, Any]:
        """Name and annotation of the parameter that takes an argument `check_names` let pass."""
        kinds = (self._types or self._decoders()).kinds
        if isinstance(place, int):
            name = self._place(place)
            return name, kinds.get(name if place < len(self._positional) else _REST, Any)
        return place, kinds.get(place if place in self._keyword else _OTHERS, Any)

    def check_names(self, given: int, named: Iterable[str]) -> None:
        """Raise `PayloadError` unless so many arguments, and these named ones, make a call."""
        others = (self._types or self._decoders()).others
        self._check_names(given, named, others is not None)

    def resolve(self) -> None:
        """Resolve the annotations now; `ConfigError` if one has no meaning here."""
        self._decoders()

    def check(self, args_json: str, kwargs_json: str) -> None:
        """Raise `PayloadError` unless these arguments, already encoded, fit the function."""
        together = (self._types or self._decoders()).together
        if kwargs_json != "{}" or together is None or not together.fits(args_json):
            self.decode(args_json, kwargs_json)

    def check_types(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], args_json: str, kwargs_json: str
    ) -> None:
        """The same for arguments that JSON has no type for: refuses also what would arrive as
        another type because no annotation says which it is."""
        open_types = (self._types or self._decoders()).open
        if not open_types and not any(
            isinstance(value, _MAY_HOLD_BYTES) for value in (*args, *kwargs.values())
        ):
            self.check(args_json, kwargs_json)
            return
        back, named = self.decode(args_json, kwargs_json)
        for index, (value, arrives) in enumerate(zip(args, back, strict=True)):
            name = self._place(index) if index < len(self._positional) else _REST
            self._check_type(value, arrives, index, open_types.get(name))
        for place, value in kwargs.items():
            name = place if place in self._keyword else _OTHERS
            self._check_type(value, named[place], place, open_types.get(name))

    def _check_type(
        self, value: Any, arrives: Any, place: int | str, kind: OpenType | None
    ) -> None:
        find = find_bytes_as_text if kind is None else kind.find_change
        change = find(value, arrives)
        if change is None:
            return
        name = self._name(place)
        why = "no annotation says what it is" if kind is not None else "its annotation is text"
        raise PayloadError(
            f"argument {name}{change.path} of task {self.name!r} {change.words}, because {why}: "
            f"annotate the parameter{_example(name, change)}, or send plain data",
            path=argument_path(place) + change.path,
        )

    def decode(self, args_json: str, kwargs_json: str) -> Arguments:
        """The arguments to call the function with, as their annotated types."""
        kinds = self._types or self._decoders()
        if kwargs_json == "{}" and kinds.together is not None:
            fitting = kinds.together.decode(args_json)
            if fitting is not None:
                return fitting, {}
        # Piece by piece: names are given, or something does not fit and the error says what.
        given = split_array(args_json) if args_json != "[]" else []
        named = split_object(kwargs_json) if kwargs_json != "{}" else {}
        self._check_names(len(given), named, kinds.others is not None)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        place: str | None = None
        try:
            for decode, piece in zip(kinds.positional, given, strict=False):
                args.append(decode(piece))
            if kinds.rest is not None:
                args.extend(map(kinds.rest, given[len(kinds.positional) :]))
            for place, piece in named.items():
                kwargs[place] = kinds.of(place)(piece)
        except PayloadError as error:
            raise self._misfit(error, len(args) if place is None else place) from error
        return args, kwargs

    def encode_result(self, value: Any, limit: int = DEFAULT_LIMIT) -> str:
        """The JSON of a result; `PayloadError` if it cannot be stored, or is not what the
        function's return annotation promises."""
        text, special = encode_special(value, limit, name="result")
        back = self.decode_result(text)
        if special:
            self._check_result_type(value, back)
        return text

    def _check_result_type(self, value: Any, back: Any) -> None:
        kind = (self._types or self._decoders()).open_result
        change = None if kind is None else kind.find_change(value, back)
        if change is not None:
            path = f"result{change.path}"
            raise PayloadError(
                f"{path} of task {self.name!r} {change.words}, because no annotation says what "
                f"it is: annotate the function's result{_example('->', change)}, or return plain "
                "data",
                path=path,
            )

    def decode_result(self, text: str) -> Any:
        """A stored result as the type of the return annotation."""
        try:
            return (self._types or self._decoders()).result(text)
        except PayloadError as error:
            path = f"result{error.path or ''}"
            raise PayloadError(
                f"{path} of task {self.name!r} does not fit its return annotation: {error}",
                path=path,
                problem="mismatch",
            ) from error

    def _check_names(self, given: int, named: Iterable[str], takes_others: bool) -> None:
        if given > len(self._positional) and not self._rest:
            takes = len(self._positional)
            what = f"takes {takes} positional arguments, and {given} were given"
            raise self._wrong(what, takes)
        for name in named:
            if name not in self._keyword:
                if not takes_others:
                    raise self._wrong(f"has no parameter named {name!r}", name)
            elif name in self._positional[:given]:
                raise self._wrong(f"was given {name!r} twice, by position and by name", name)
        missing = [
            name for name, index in self._required if not 0 <= index < given and name not in named
        ]
        if missing:
            raise self._wrong(f"needs {', '.join(map(repr, missing))}", missing[0])

    def _wrong(self, what: str, place: int | str) -> PayloadError:
        bare = [p.replace(annotation=p.empty) for p in self._parameters]
        shown = inspect.Signature(bare)
        return PayloadError(
            f"task {self.name!r} {what}; its parameters are {shown}",
            path=argument_path(place),
            problem="mismatch",
        )

    def _place(self, index: int) -> str:
        return self._positional[index] if index < len(self._positional) else f"args[{index}]"

    def _name(self, place: int | str) -> str:
        return self._place(place) if isinstance(place, int) else place

    def _misfit(self, error: PayloadError, place: int | str) -> PayloadError:
        inside = error.path or ""
        return PayloadError(
            f"argument {self._name(place)}{inside} of task {self.name!r} does not fit its "
            f"annotation: {error}",
            path=argument_path(place) + inside,
            problem="mismatch",
        )

    def _decoders(self) -> _Types:
        if self._types is None:
            try:
                self._types = self._resolve()
            except NameError as error:
                raise ConfigError(
                    f"an annotation of task {self.name!r} cannot be resolved ({error}): "
                    "import that name at run time, not only for type checking"
                ) from error
        return self._types

    def _resolve(self) -> _Types:
        hints = typing.get_type_hints(self._function, include_extras=True)
        positional: list[Decode] = []
        keyword: dict[str, Decode] = {}
        rest = others = None
        open_types: dict[str, OpenType] = {}
        kinds: dict[str, Any] = {}
        for parameter in self._parameters:
            name = parameter.name
            kind = hints.get(name, Any)
            decode = self._parameter(parameter, kind)
            if parameter.kind is parameter.VAR_POSITIONAL:
                rest, name = decode, _REST
            elif parameter.kind is parameter.VAR_KEYWORD:
                others, name = decode, _OTHERS
            kinds[name] = kind
            open_type = OpenType.of(kind)
            if open_type is not None:
                open_types[name] = open_type
            if parameter.kind in _POSITIONAL:
                positional.append(decode)
            if parameter.kind in _KEYWORD:
                keyword[parameter.name] = decode
        result = result_kind(hints.get("return", Any), streams=self.streams)
        return _Types(
            positional=tuple(positional),
            together=self._together(hints),
            keyword=keyword,
            rest=rest,
            others=others,
            # An unusual return annotation must not keep a task from being defined: its
            # value then comes back as plain data.
            result=decoder(Any if unsupported(result) else result),
            kinds=kinds,
            result_kind=result,
            open=open_types,
            open_result=OpenType.of(result),
        )

    def _together(self, hints: Mapping[str, Any]) -> ArrayDecoder | None:
        """One decoder for the positional arguments, if they alone make a call."""
        kinds = [hints.get(name, Any) for name in self._positional]
        needs_names = any(index < 0 for _, index in self._required)
        if self._rest or needs_names or any(map(unsupported, kinds)):
            return None
        return ArrayDecoder(kinds, len(self._required))

    def _parameter(self, parameter: inspect.Parameter, kind: Any) -> Decode:
        why = unsupported(kind)
        if why is None:
            return decoder(kind)
        members = _members(kind)
        if members and not any(unsupported(member) for member in members):
            return _first_fit(members)
        if parameter.default is parameter.empty:
            raise ConfigError(
                f"parameter {parameter.name!r} of task {self.name!r} is annotated with a type "
                f"that cannot travel as JSON ({why}): use plain data, a dataclass, a pydantic "
                "model or Any",
                option=parameter.name,
            )
        return decoder(Any)  # never sent: its default serves


def argument_path(place: int | str) -> str:
    """Where an argument stands in a call: `args[0]`, `kwargs.a`."""
    return f"args[{place}]" if isinstance(place, int) else f"kwargs.{place}"


def _example(place: str, change: ValueChange) -> str:
    """ ", such as `x: Path`" where the whole argument is what changes, and its type has a name."""
    if change.path:
        return ""
    gap = " " if place == "->" else ": "
    # `Path("a")` is a PosixPath, and nobody writes that.
    name = "Path" if isinstance(change.sent, PurePath) else type(change.sent).__name__
    return f", such as `{place}{gap}{name}`"


def _members(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) in (Union, types.UnionType) else ()


def _first_fit(members: tuple[Any, ...]) -> Decode:
    """For unions that JSON cannot tell apart: the first member that fits, text last."""
    ordered = sorted(members, key=lambda member: member is str)
    decoders = [decoder(member) for member in ordered]

    def decode(piece: Raw) -> Any:
        for attempt in decoders[:-1]:
            try:
                return attempt(piece)
            except PayloadError:
                continue
        return decoders[-1](piece)

    return decode


def result_kind(annotation: Any, *, streams: bool) -> Any:
    """The type of the value that a return annotation promises in the end.

    `TaskResult[T, E]` promises T; a generator promises what it returns, not what it yields.
    """
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is TaskResult:
        return parts[0] if parts else Any
    if annotation is TaskResult:
        return Any
    if origin in _AWAITABLES:
        return result_kind(parts[-1], streams=streams)
    if streams:
        if origin in _GENERATORS and len(parts) == 3:
            return result_kind(parts[2], streams=False)
        return Any
    return annotation
