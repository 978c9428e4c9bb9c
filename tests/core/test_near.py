"""What may have been meant by a name that is not known."""

from __future__ import annotations

from holdfast.core.near import near_names

KNOWN = {"tasks.divide", "tasks.add", "mail.send"}


def test_the_same_name_in_a_module_is_meant() -> None:
    assert near_names("divide", KNOWN) == ["tasks.divide"]


def test_or_one_that_looks_alike() -> None:
    assert near_names("tasks.dvide", KNOWN)[0] == "tasks.divide"
    assert near_names("zzz", KNOWN) == []
