"""The arguments of a step before its values are there.

Owns the look for placeholders among arguments (in lists, tuples and dicts), and the check of a
call in which some are still to come: what is there must fit its annotation, and what will come
must be of a type that fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.core.errors import ConfigError, PayloadError
from holdfast.core.payload.codec import decode, encode_value, unsupported
from holdfast.core.payload.signature import Signature
from holdfast.core.workflows.inputs import Fill, Where
from holdfast.core.workflows.placeholder import NotAValue, reference_of
from holdfast.core.workflows.value_kind import NoMember, fits, item_kind, member, shown

__all__ = ["check_arguments", "check_value", "take_out"]

_DEEPEST: Final = 100
_VALUE: Final = "value"
"""What the codec calls a value by itself."""
_CONTAINERS: Final = (list, tuple, dict)


def take_out(value: Any, where: Where, fills: list[Fill], depth: int = _DEEPEST) -> Any:
    """The value with None in the place of each placeholder, which are noted in `fills`."""
    reference = reference_of(value)
    if reference is not None:
        fills.append(Fill(where, reference))
        return None
    if isinstance(value, NotAValue):
        raise ConfigError(value.remedy())
    if type(value) not in _CONTAINERS or depth == 0:
        return value
    before = len(fills)
    if isinstance(value, dict):
        named = {k: take_out(v, (*where, k), fills, depth - 1) for k, v in value.items()}
        return value if len(fills) == before else named
    items = [take_out(v, (*where, i), fills, depth - 1) for i, v in enumerate(value)]
    return value if len(fills) == before else items


def check_arguments(
    signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int
) -> None:
    """Raise `PayloadError` unless these arguments, placeholders among them, fit the task."""
    signature.check_names(len(args), kwargs)
    places: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    for place, value in places:
        name, kind = signature.parameter(place)
        check_value(value, kind, name, f"argument {{}} of task {signature.name!r}", limit)


def check_value(value: Any, kind: Any, path: str, what: str, limit: int) -> None:
    """Raise `PayloadError` unless a value, placeholders in it, is of this type.

    `what` names it, with `{}` for the path.
    """
    reference = reference_of(value)
    if reference is not None:
        if not fits(reference.value, kind):
            raise _misfit(
                what, path, f"{reference.text} is {shown(reference.value)}, not {shown(kind)}"
            )
        return
    if not _holds_any(value):
        if unsupported(kind):
            return
        try:
            decode(encode_value(value, limit), kind)
        except PayloadError as error:
            place = f"{path}{(error.path or '').removeprefix(_VALUE)}"
            if error.problem == "mismatch":
                raise _misfit(what, place, str(error)) from None
            raise PayloadError(
                f"{what.format(place)}: {error}", path=place, problem=error.problem
            ) from None
        return
    named = isinstance(value, dict)
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        inner = f"{path}[{key!r}]"
        try:
            part_kind = (
                member(kind, key, attribute=False).kind
                if named or isinstance(value, tuple)
                else item_kind(kind)
            )
        except NoMember:
            raise _misfit(
                what, path, f"a {type(value).__name__} is given where {shown(kind)} is wanted"
            ) from None
        check_value(part, part_kind, inner, what, limit)


def _holds_any(value: Any, depth: int = _DEEPEST) -> bool:
    if type(value) not in _CONTAINERS or depth == 0:
        return False
    for part in value.values() if isinstance(value, dict) else value:
        if reference_of(part) is not None or _holds_any(part, depth - 1):
            return True
    return False


def _misfit(what: str, path: str, why: str) -> PayloadError:
    return PayloadError(
        f"{what.format(path)} does not fit its annotation: {why}", path=path, problem="mismatch"
    )
