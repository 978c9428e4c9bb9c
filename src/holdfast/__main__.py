"""The `holdfast` command, and `python -m holdfast`: the process before a command is imported.

Owns Ctrl-C until then: nothing has been begun that would have to be undone, so the process ends at
once, without a traceback. Imports nothing of Holdfast, or of anybody else, before that is set up.
"""

import os
import signal


def main() -> None:
    """Run the command that this process was started for."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        # Ctrl-C is ignored here, as after `nohup` or in a script's background.
        _run()
        return
    # As a shell reports a program that SIGINT has ended.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    _run(lambda: signal.signal(signal.SIGINT, signal.default_int_handler))


def _run(imported: object = None) -> None:
    from holdfast.cli.main import main as command

    command(prog_name="holdfast", obj=imported)


if __name__ == "__main__":
    main()
