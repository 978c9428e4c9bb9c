"""From `MODULE:APP` to a supervisor: the application is imported elsewhere, the store opened here.

Owns the order of precedence of a worker's settings: what was given here (a flag, a keyword of
`app.worker`), then the app's own setting, then the default.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.runtime.supervisor.children.template_process import TemplateProcess

if TYPE_CHECKING:
    from holdfast.runtime.options import WorkerOptions
    from holdfast.runtime.supervisor.supervisor import Supervisor
    from holdfast.runtime.wire.messages import Manifest
    from holdfast.store.settings import StoreSettings

log = logging.getLogger("holdfast.worker")

_CONNECTIONS = 4
"""What a worker takes of a PostgreSQL server, however many children it has; a fifth is there for
the renewal of leases alone."""


def launch(
    target: str,
    given: Mapping[str, Any],
    *,
    version: str,
    ready: Callable[[], None] = lambda: None,
) -> Supervisor:
    """Everything a worker needs, ready to `run`; raises if app or store are not usable.

    `given` may have its queues as text, like the flag `-q`.
    """
    template = TemplateProcess(target)
    try:
        # From here on the application is being imported, over there, and so is all of this.
        from holdfast.runtime.options import parse_queues

        if isinstance(given.get("queues"), str):
            given = {**given, "queues": parse_queues(given["queues"])}
        from holdfast.runtime.supervisor.supervisor import Supervisor
        from holdfast.store.open import open_store

        manifest = template.manifest()
        if not manifest.tasks:
            log.warning("%s has no task: import the modules that define them beside it", target)
        options = worker_options(manifest, given)
        store = open_store(store_settings(manifest))
        try:
            return Supervisor(template, manifest, store, options, version=version, ready=ready)
        except BaseException:
            store.close()
            raise
    except BaseException:
        # It has no children yet, and may be in the middle of a long import.
        template.end(patience=0)
        raise


def worker_options(manifest: Manifest, given: Mapping[str, Any]) -> WorkerOptions:
    """The settings of the worker, from what was given and what the app says."""
    from dataclasses import fields

    from holdfast.core.options.retention import Retention
    from holdfast.runtime.options import WorkerOptions

    known = {field.name for field in fields(WorkerOptions)}
    settings = {name: value for name, value in manifest.settings.items() if name in known}
    if isinstance(settings.get("retention"), Mapping):
        settings["retention"] = Retention(**settings["retention"])
    settings |= {name: value for name, value in given.items() if value is not None}
    return WorkerOptions(**settings)


def store_settings(manifest: Manifest) -> StoreSettings:
    """Where the app's tasks are, and with how many connections a worker goes there."""
    from holdfast.store.settings import StoreSettings

    return StoreSettings(**{**manifest.settings["store"], "max_connections": _CONNECTIONS})
