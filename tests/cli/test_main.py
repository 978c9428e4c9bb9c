"""The root command: quick help, one line per command, aliases, and real processes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import click
import pytest

from holdfast import Holdfast
from holdfast.cli.main import ALIASES, COMMANDS, main
from tests.cli.conftest import run


def holdfast(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_help_lists_every_command() -> None:
    said = run("--help")
    assert said.code == 0
    for name, line in COMMANDS.items():
        assert name in said.out
        assert line in " ".join(said.out.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_a_command_is_its_own(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.get_short_help_str(limit=200) == COMMANDS[name]


def test_help_imports_no_command() -> None:
    program = (
        "import sys\n"
        "from holdfast.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted(m for m in sys.modules if m.partition('.')[0] in"
        " {'rich', 'apsw', 'psycopg', 'msgspec'} or m.startswith('holdfast.')), file=sys.stderr)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert answer.stderr.strip() == "['holdfast.cli', 'holdfast.cli.main']"


def test_an_alias_is_the_command() -> None:
    for alias, name in ALIASES.items():
        assert run(alias, "list", "--help").out == run(name, "list", "--help").out.replace(
            f"holdfast {name}", f"holdfast {alias}"
        )


def test_an_unknown_command_is_a_usage_error() -> None:
    said = run("taks")
    assert said.code == 2
    assert "No such command 'taks'" in said.err


def test_a_real_process_sends_and_lists(tmp_path: Path) -> None:
    sent = holdfast("tasks", "send", "resize", "--args", '["a.png"]', cwd=tmp_path)
    assert sent.returncode == 0, sent.stderr
    task_id = sent.stdout.strip()
    assert (tmp_path / "holdfast.db").exists()
    listed = holdfast("tasks", "list", "--json", cwd=tmp_path)
    assert [task["id"] for task in json.loads(listed.stdout)["tasks"]] == [task_id]
    assert listed.stderr == ""
    cancelled = holdfast("tasks", "cancel", task_id, cwd=tmp_path)
    assert cancelled.stdout == f"{task_id}  cancelled\n"
    again = holdfast("tasks", "cancel", "01020304-0000-7000-8000-000000000000", cwd=tmp_path)
    assert again.returncode == 1
    assert again.stderr == ""


APP = """
from holdfast import Holdfast
app = Holdfast("sqlite:///tasks.db")

@app.task("shop.pay")
def pay(): ...
"""

SLOW = """
import os, signal, time
os.kill(os.getpid(), signal.SIGINT)
time.sleep(60)
"""


def test_a_name_that_the_app_does_not_have_is_remarked(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    assert holdfast("tasks", "send", "shop.pay", "--app", "shop:app", cwd=tmp_path).stderr == ""
    for name in ("shop.pya", "pay"):
        said = holdfast("tasks", "send", name, "--app", "shop:app", cwd=tmp_path)
        assert said.returncode == 0
        assert f"the app has no task '{name}' (from --app shop:app)" in said.stderr
        assert "did you mean shop.pay?" in said.stderr
    said = holdfast("schedules", "add", "x", "@daily", "pay", "--app", "shop:app", cwd=tmp_path)
    assert "the app has no task 'pay' (from --app shop:app): what is sent waits" in said.stderr
    assert "did you mean shop.pay?" in said.stderr
    limit = ("tasks", "limit", "pay", "--concurrency", "2")
    said = holdfast(*limit, "--app", "shop:app", cwd=tmp_path)
    assert (said.returncode, said.stdout) == (0, "pay  2 at a time\n")
    assert "the limit is kept for a task of this very name; did you mean shop.pay?" in said.stderr
    said = holdfast("tasks", "send", "elsewhere", "--url", "sqlite:///tasks.db", cwd=tmp_path)
    assert said.stderr == ""


def test_ctrl_c_has_its_own_exit_code(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    said = holdfast("tasks", "list", "--app", "slow:app", cwd=tmp_path)
    assert (said.returncode, said.stdout, said.stderr) == (130, "", "")


@pytest.mark.parametrize("module", ["typing", "click", "msgspec"])
def test_ctrl_c_while_the_command_itself_is_imported(tmp_path: Path, module: str) -> None:
    (tmp_path / f"{module}.py").write_text(SLOW)
    said = holdfast("tasks", "list", cwd=tmp_path)
    assert (said.returncode, said.stdout, said.stderr) == (130, "", "")


def test_an_answer_that_nobody_reads_or_that_finds_no_room(tmp_path: Path) -> None:
    assert holdfast("tasks", "send", "resize", cwd=tmp_path).returncode == 0
    command = [sys.executable, "-m", "holdfast", "tasks", "list"]
    reading, writing = os.pipe()
    os.close(reading)
    subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], cwd=tmp_path, check=True)
    with os.fdopen(writing, "wb") as nobody, Path("/dev/full").open("wb") as full:
        for output, code, words in (
            (nobody, 141, ""),
            (full, 1, "the answer cannot be written: [Errno 28]"),
        ):
            said = subprocess.run(
                command,
                cwd=tmp_path,
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                timeout=60,
            )
            assert said.returncode == code
            assert words in said.stderr
            assert "Traceback" not in said.stderr
            assert said.stderr or code == 141


@pytest.mark.parametrize("command", [("tasks", "list"), ("worker", "shop:app")], ids=" ".join)
def test_a_directory_that_is_gone(tmp_path: Path, command: tuple[str, ...]) -> None:
    program = 'mkdir gone; cd gone; rmdir ../gone; exec "$@"'
    said = subprocess.run(
        ["sh", "-c", program, "sh", sys.executable, "-m", "holdfast", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert said.returncode == 2
    assert "the working directory cannot be used (No such file or directory)" in said.stderr
    assert "Traceback" not in said.stderr


def at_a_terminal(*arguments: str, cwd: Path, columns: int) -> str:
    """What a command writes to a terminal of this width."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *arguments],
        cwd=cwd,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns)},
    )
    os.close(theirs)
    written = b""
    try:
        # Linux answers the read behind the last byte with an error, not with nothing.
        while piece := os.read(ours, 65536):
            written += piece
    except OSError:
        pass
    finally:
        os.close(ours)
        process.wait(60)
    return written.decode()


@pytest.mark.parametrize(
    "columns",
    [60, pytest.param(80, marks=pytest.mark.slow), pytest.param(120, marks=pytest.mark.slow), 200],
)
def test_a_terminal_gets_colours_and_short_ids_that_work(tmp_path: Path, columns: int) -> None:
    task_id = holdfast("tasks", "send", "resize", cwd=tmp_path).stdout.strip()
    short = f"{task_id[:8]}-{task_id[-6:]}"
    listed = at_a_terminal("tasks", "list", cwd=tmp_path, columns=columns)
    assert "\x1b[" in listed
    assert short in listed
    assert "PENDING" in listed
    assert "resize" in listed
    assert ("default" in listed) is (columns >= 100)
    shown = at_a_terminal("tasks", "show", short, cwd=tmp_path, columns=columns)
    assert "resize" in shown
    assert task_id in shown
    assert "no worker is running" in " ".join(shown.split())


def test_a_terminal_of_eighty_columns_has_room_for_what_went_wrong(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'holdfast.db'}"
    with Holdfast(url) as app:

        @app.task("resize")
        def resize() -> None:
            raise ValueError("no such picture")

        task = resize.send().id
        app.worker().run_until_idle()
    listed = at_a_terminal("dead-letters", "list", cwd=tmp_path, columns=80)
    assert "ValueError: no such picture" in listed
    assert f"{str(task)[:8]}-{str(task)[-6:]}" in listed


def test_no_color_is_no_style_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    task_id = holdfast("tasks", "send", "resize", cwd=tmp_path).stdout.strip()
    for command in (["list"], ["show", task_id]):
        assert "\x1b[" not in at_a_terminal("tasks", *command, cwd=tmp_path, columns=80)


def test_a_stream_that_cannot_show_a_character_gets_its_escape(tmp_path: Path) -> None:
    sent = holdfast("tasks", "send", "resize", "--args", '["größe ✓"]', cwd=tmp_path)
    shown = subprocess.run(
        [sys.executable, "-m", "holdfast", "tasks", "show", sent.stdout.strip()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert shown.returncode == 0, shown.stderr
    assert '"größe \\u2713"' in shown.stdout.decode("latin-1")
