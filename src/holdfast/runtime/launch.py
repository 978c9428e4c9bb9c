"""From `MODULE:APP` to a supervisor: the application is imported elsewhere, the store opened here.

Owns the order of precedence of a worker's settings: what was given here (a flag, a keyword of
`app.worker`), then the app's own setting, then the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from holdfast.core.retention import Retention
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.pool.crew import Template
from holdfast.runtime.wire import Manifest
from holdfast.store.settings import StoreSettings

if TYPE_CHECKING:
    from holdfast.runtime.supervisor import Supervisor

_CONNECTIONS = 5
"""What a worker takes of a PostgreSQL server, however many children it has."""


def launch(
    target: str,
    given: Mapping[str, Any],
    *,
    version: str,
    ready: Callable[[], None] = lambda: None,
) -> Supervisor:
    """Everything a worker needs, ready to `run`; raises if app or store are not usable."""
    template = Template(target)
    try:
        # While the application is being imported over there.
        from holdfast.runtime.supervisor import Supervisor
        from holdfast.store.open import open_store

        manifest = template.manifest()
        options = worker_options(manifest, given)
        store = open_store(replace(store_settings(manifest), max_connections=_CONNECTIONS))
        try:
            return Supervisor(template, manifest, store, options, version=version, ready=ready)
        except BaseException:
            store.close()
            raise
    except BaseException:
        template.end()
        raise


def worker_options(manifest: Manifest, given: Mapping[str, Any]) -> WorkerOptions:
    """The settings of the worker, from what was given and what the app says."""
    known = {field.name for field in fields(WorkerOptions)}
    settings = {name: value for name, value in manifest.settings.items() if name in known}
    if isinstance(settings.get("retention"), Mapping):
        settings["retention"] = Retention(**settings["retention"])
    settings |= {name: value for name, value in given.items() if value is not None}
    return WorkerOptions(**settings)


def store_settings(manifest: Manifest) -> StoreSettings:
    """Where the app's tasks are."""
    return StoreSettings(**manifest.settings["store"])
