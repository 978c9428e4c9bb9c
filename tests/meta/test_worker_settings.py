"""Every setting of a worker has a keyword, an environment variable and a flag, all documented."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import click
import pytest

from holdfast.cli.commands.worker import worker
from holdfast.runtime.options import WorkerOptions, WorkerSettings

SETTINGS = {setting.name: setting for setting in fields(WorkerOptions)}
FLAGS = {option.name: option for option in worker.params if isinstance(option, click.Option)}
VALUES = {
    "queues": "low,high",
    "retention": "tasks=3d",
    "burst": "true",
    "drop_unknown_after": "11",
    "http": "127.0.0.1:9000",
}
PAGE = Path(__file__).parents[2] / "docs" / "operations" / "worker.md"


def test_every_setting_is_a_typed_keyword() -> None:
    assert WorkerSettings.__annotations__.keys() == SETTINGS.keys()


def test_every_setting_has_a_flag_of_its_name() -> None:
    assert SETTINGS.keys() == {name for name in FLAGS if name in SETTINGS}
    given = worker.make_context("worker", ["shop:app"]).params
    for name in SETTINGS:
        # What was not typed is not given.
        assert given[name] is None
        assert f"--{name.replace('_', '-')}" in FLAGS[name].opts
        # One reader of the environment, and one order of precedence.
        assert FLAGS[name].envvar is None


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_has_an_environment_variable(name: str) -> None:
    text = VALUES.get(name, "13")
    found = WorkerOptions.load({}, {}, {f"HOLDFAST_{name.upper()}": text})
    assert getattr(found, name) != getattr(WorkerOptions(), name)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_in_the_document(name: str) -> None:
    assert f"`--{name.replace('_', '-')}`" in PAGE.read_text(encoding="utf-8")
