"""An application that starts a thread when it is imported."""

from __future__ import annotations

import os
import threading
import time

from holdfast import Holdfast
from tests.runtime.apps.plain import hold_the_gil

app = Holdfast("sqlite:///:memory:")
imported_by = os.getpid()
threading.Thread(target=threading.Event().wait, daemon=True).start()


@app.task("where")
def where() -> list[int]:
    return [imported_by, os.getpid()]


@app.task("say")
def say(text: str) -> None:
    print(text)


@app.task("sleep")
def sleep(seconds: float) -> None:
    time.sleep(seconds)


@app.task("hold_the_gil")
def hold(seconds: float) -> None:
    hold_the_gil(seconds)
