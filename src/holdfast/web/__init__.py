"""The dashboard and the HTTP API: one ASGI app, by itself (`holdfast web`) or in yours.

from holdfast.web import dashboard

app.mount("/tasks", dashboard(holdfast_app, access=who_may))     # FastAPI, Starlette

Needs the extra `web`. Asks `app.control`, like any program, and never the store.
"""

from importlib.util import find_spec

if missing := [name for name in ("starlette", "jinja2") if find_spec(name) is None]:
    raise ImportError(
        f"holdfast.web needs {' and '.join(missing)}: pip install 'holdfast[web]'", name=missing[0]
    )

from holdfast.web.access import Role, Visitor
from holdfast.web.dashboard import dashboard
from holdfast.web.mounting import mounted

__all__ = ["Role", "Visitor", "dashboard", "mounted"]
