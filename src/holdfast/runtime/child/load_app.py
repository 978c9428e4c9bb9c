"""From MODULE:APP to the application, or to words that help its author.

Owns the import of user code and every sentence about its failure. A traceback is cut to the
user's own frames: how we came to import the module explains nothing.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback

from holdfast.core.payload.failure import users_own
from holdfast.runtime.application import METHOD, Application

_EXAMPLE = "for example shop.tasks:app"


class Unloadable(Exception):
    """The application cannot be loaded; the message is for the user's eyes."""


def load(target: str, search_path: str = "") -> Application:
    """Import the module of MODULE:APP and find the application in it.

    `search_path`: where the process that embeds the worker finds its modules, written like
    PYTHONPATH.
    """
    module_name, colon, path = target.partition(":")
    if not colon or not module_name or not path:
        raise Unloadable(f"{target!r} names no application: give MODULE:APP, {_EXAMPLE}")
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise Unloadable(f"{module_name!r} is a file: give the name of the module, {dotted}:{path}")
    place = os.getcwd()  # noqa: PTH109 - sys.path holds strings
    if search_path:
        # As it is over there, so that the same names mean the same modules.
        theirs = search_path.split(os.pathsep)
        sys.path[:] = [*theirs, *(entry for entry in sys.path if entry not in theirs)]
    if place not in sys.path:
        sys.path.insert(0, place)
    return _application(_find(_import(module_name), path, target), target)


def _import(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise Unloadable(
                f"there is no module {error.name!r}: {name!r} was looked for in "
                f"{os.getcwd()} and on the Python path"  # noqa: PTH109
            ) from None
        raise Unloadable(_shown(name, error)) from None
    except BaseException as error:  # noqa: BLE001 - a module may raise anything when imported
        raise Unloadable(_shown(name, error)) from None


def _find(module: object, path: str, target: str) -> object:
    found = module
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            apps = [key for key, value in vars(module).items() if hasattr(type(value), METHOD)]
            hint = f"; it has {', '.join(sorted(apps))}" if apps else ""
            raise Unloadable(
                f"{target!r}: module {target.partition(':')[0]!r} has no {name!r}{hint}"
            ) from None
    return found


def _application(found: object, target: str) -> Application:
    describe = getattr(found, METHOD, None) if hasattr(type(found), METHOD) else None
    application = describe() if describe is not None else None
    if not isinstance(application, Application):
        kind = type(found)
        what = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        raise Unloadable(
            f"{target!r} is not an application but a {what}: name the Holdfast object, {_EXAMPLE}"
        )
    return application


def _shown(name: str, error: BaseException) -> str:
    error = error.with_traceback(users_own(error.__traceback__, _is_machinery))
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001 - the exception's own code runs in there
        text = f"{type(error).__qualname__}\n"
    return f"importing {name} failed:\n\n{text.rstrip()}"


def _is_machinery(filename: str) -> bool:
    return filename in (__file__, importlib.__file__) or filename.startswith("<frozen importlib")
