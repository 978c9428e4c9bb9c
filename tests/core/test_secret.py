"""A secret travels, comes back as it was, and is shown nowhere."""

from __future__ import annotations

import copy
import json
import pickle
import traceback
from base64 import b64encode
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from holdfast import Secret
from holdfast.core.errors import ConfigError, PayloadError
from holdfast.core.options.concurrency_key import KeyTemplate
from holdfast.core.payload.codec import decode, encode_value, to_show, unsupported
from holdfast.core.payload.failure import decode_error, describe, encode_error, without_secrets
from holdfast.core.payload.signature import Signature
from holdfast.core.redaction import mask
from holdfast.core.result import TaskError
from holdfast.core.secret import hide_secrets, secret_texts

VALUE = "hunter2-very-secret"


class Socket:
    """Something that cannot travel."""


@dataclass
class Login:
    user: str
    password: Secret[str]


def login(
    password: Secret[str],
    token: Secret[str] | None = None,
    pin: Secret[int] = Secret(1),  # noqa: B008
    key: Secret = Secret(b""),  # type: ignore[type-arg] # noqa: B008
    whole: Login | None = None,
) -> Secret[str]:
    return password


SIGNATURE = Signature(login, "login")


def round_trip(*args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    from holdfast.core.payload.codec import encode_arguments

    args_json, kwargs_json, special = encode_arguments(args, kwargs)
    if special:
        SIGNATURE.check_types(args, kwargs, args_json, kwargs_json)
    else:
        SIGNATURE.check(args_json, kwargs_json)
    return SIGNATURE.decode(args_json, kwargs_json)


def test_it_comes_back_as_it_was() -> None:
    whole = Login("ada", Secret(VALUE))
    args, kwargs = round_trip(
        Secret(VALUE), token=Secret("t"), pin=Secret(42), key=Secret([1]), whole=whole
    )
    assert args == [Secret(VALUE)]
    assert kwargs == {"token": Secret("t"), "pin": Secret(42), "key": Secret([1]), "whole": whole}
    assert args[0].reveal() == VALUE
    assert SIGNATURE.decode_result(SIGNATURE.encode_result(args[0])).reveal() == VALUE
    assert Secret(Secret(VALUE)).reveal() == VALUE
    path = decode(encode_value(Secret(Path("/a"))), Secret[Path])
    assert path.reveal() == Path("/a")


def test_it_shows_itself_nowhere() -> None:
    secret = Secret(VALUE)
    shown = f"{secret} {secret!r} {secret:>30} {[secret]} {Login('ada', secret)} %s" % (secret,)
    assert VALUE not in shown
    assert repr(secret) == "Secret(***)"
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(secret)
    assert copy.deepcopy({"a": secret}) == {"a": copy.copy(secret)}
    assert {secret: 1}[Secret(VALUE)] == 1
    assert secret != VALUE
    assert not hasattr(secret, "__dict__")


@pytest.mark.parametrize(
    "args",
    [
        (VALUE,),
        (Secret(12),),
        ({"$secret": VALUE, "more": 1},),
        (Secret(float("nan")),),
        (Secret(datetime(2026, 1, 1)),),  # noqa: DTZ001
        (Secret({VALUE: {1: 2}}),),
        (Secret(Socket()),),
        (Secret("x"), Secret(9)),
    ],
)
def test_what_does_not_fit_is_refused_without_being_shown(args: tuple[Any, ...]) -> None:
    with pytest.raises(PayloadError) as raised:
        round_trip(*args)
    assert "Secret" in str(raised.value)
    told = "".join(traceback.format_exception(raised.value))
    assert VALUE not in told
    assert "2026" not in told


def test_the_remedy_is_named() -> None:
    with pytest.raises(
        PayloadError, match=r"argument password .* give `Secret\(…\)`".replace("`", "")
    ):
        round_trip(VALUE)


def test_where_no_annotation_says_so_it_is_refused() -> None:
    def open_to_all(given: Any) -> None: ...

    from holdfast.core.payload.codec import encode_arguments

    args_json, kwargs_json, special = encode_arguments([Secret(VALUE)], {})
    assert special
    with pytest.raises(PayloadError, match="annotate the parameter, such as `given: Secret`"):
        Signature(open_to_all, "t").check_types([Secret(VALUE)], {}, args_json, kwargs_json)


def test_a_secret_of_what_cannot_travel_is_refused_at_definition() -> None:
    assert unsupported(Secret[str]) is None
    assert unsupported(Secret[Socket]) is not None

    def of_a_socket(given: Secret[Any], socket: Secret[Socket]) -> None: ...

    with pytest.raises(ConfigError, match="socket"):
        Signature(of_a_socket, "t").resolve()


def test_stored_values_are_shown_without_it() -> None:
    stored = encode_value([{"a": Secret({"b": VALUE})}, Secret(VALUE), "plain"])
    assert VALUE in stored
    assert to_show(stored) == [{"a": "***"}, "***", "plain"]
    assert mask(decode(stored)) == [{"a": "***"}, "***", "plain"]
    # Written by hand.
    assert hide_secrets({"$secret": 1, "x": VALUE}) == "***"
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert hide_secrets(deep) == "***"
    assert secret_texts(deep) == []
    while deep:
        deep = deep.pop()


def test_an_error_is_stored_without_the_secrets_of_its_arguments() -> None:
    key = "-----BEGIN KEY-----\nabc'd\n"
    stored = encode_value([Secret(VALUE), {"x": Secret({"y": key, "z": "ab"})}, Secret(123456)])
    try:
        try:
            raise KeyError(VALUE)
        except KeyError as error:
            raise ValueError(f"no {VALUE} for {key!r} and {key}, ab, 123456") from error
    except ValueError as error:
        told = without_secrets(describe(error), ["{}", stored])
    text = encode_error(told)
    for secret in (VALUE, "BEGIN KEY", "123456"):
        assert secret not in text
    # Too short to be told from other words.
    assert told.message == 'no *** for "***" and ***, ab, ***'
    plain = TaskError("A", "b")
    assert without_secrets(plain, ['["b"]']) is plain
    assert decode_error(encode_error(TaskError("A", data=[Secret(VALUE)]))).data == ["***"]


@pytest.mark.parametrize("user", ["", "a", "bo", "eve"])
def test_it_is_found_in_disguise(user: str) -> None:
    value = 'S3cr3t/Tok en+4?"ö'
    stored = encode_value([Secret(value)])
    both = f"{user}:{value}" if user else value
    disguises = [
        quote(value),
        quote(value, safe=""),
        quote_plus(value),
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        b64encode(both.encode()).decode(),
    ]
    for disguise in disguises:
        told = without_secrets(TaskError("A", f"401 for <{disguise}>"), ["{}", stored])
        assert "***" in told.message
        left = told.message.removeprefix("401 for <").removesuffix(">").replace("***", "")
        # Of Base64 the digits at the ends are shared with what stands beside it.
        assert len(left) <= len(user) * 8 // 6 + 8
        assert "S3cr3t" not in left


def test_a_key_that_is_shown_is_not_made_of_it() -> None:
    template = KeyTemplate("{password}", login, "login")
    with pytest.raises(PayloadError, match="keys are shown") as raised:
        template.fill([Secret(VALUE)], {})
    assert VALUE not in str(raised.value)
