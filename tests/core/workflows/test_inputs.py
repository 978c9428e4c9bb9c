"""Values are put where they belong, and everything else stays as it was."""

from __future__ import annotations

import pytest

from holdfast.core.errors import PayloadError
from holdfast.core.payload.codec import Raw, to_json
from holdfast.core.workflows.inputs import (
    Fill,
    Missing,
    StoredFill,
    encode_inputs,
    fill_arguments,
    fill_template,
    part_of,
    read_inputs,
    template,
)
from holdfast.core.workflows.placeholder import Reference


def reference(step: int, *path: str | int) -> Reference:
    return Reference(None, "result", (step,), int, "x.result", path)


def the_step(fill: StoredFill) -> Raw:
    return Raw(to_json({"of": fill.steps, "path": fill.path}).encode())


def test_what_is_said_is_read_back() -> None:
    text = encode_inputs([Fill((0, "rows"), reference(3, "a", 1))], {"name": "m"})
    assert text is not None
    assert text == '[["map",{"name":"m"}],[[0,"rows"],["result",[3],["a",1]]]]'
    fills, settings = read_inputs(text)
    assert fills == [StoredFill([0, "rows"], "result", [3], ["a", 1])]
    assert settings == {"name": "m"}
    assert encode_inputs([]) is None


def test_arguments_are_filled_in() -> None:
    text = encode_inputs(
        [
            Fill((0,), reference(1)),
            Fill((1, 1), reference(2)),
            Fill((1, 2, "k"), reference(3)),
            Fill(("day",), reference(4, "x")),
        ]
    )
    assert text is not None
    args, kwargs = fill_arguments(
        '[null,[1.50,null,{"k":null}],"é"]', '{"day":null,"n":1e3}', read_inputs(text).fills,
        the_step,
    )  # fmt: skip
    assert args == (
        '[{"of":[1],"path":[]},[1.5,{"of":[2],"path":[]},{"k":{"of":[3],"path":[]}}],"é"]'
    )
    assert kwargs == '{"day":{"of":[4],"path":["x"]},"n":1e3}'


def test_what_is_returned_is_filled_in() -> None:
    alone = template(None, [Fill((), reference(7))], 1000)
    assert fill_template(alone, the_step) == '{"of":[7],"path":[]}'
    two = template([None, {"a": None, "b": 1}], [Fill((0,), reference(1))], 1000)
    assert fill_template(two, the_step) == '[{"of":[1],"path":[]},{"a":null,"b":1}]'


def test_a_part_of_a_value() -> None:
    assert bytes(part_of('{"a":[1, {"b":"c"}]}', ["a", -1, "b"], "x")) == b'"c"'
    for path in (["b"], ["a", 5], ["a", "x"], [0]):
        with pytest.raises(Missing, match=r"raw\.result.* has no"):
            part_of('{"a":[1]}', path, "raw.result")  # type: ignore[arg-type]


def test_what_is_no_input_is_refused() -> None:
    with pytest.raises(PayloadError, match="cannot be read"):
        read_inputs("[[1],[2]]")
