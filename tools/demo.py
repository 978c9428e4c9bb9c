"""What `make demo` runs: the same as `holdfast demo`, from the working copy."""

from __future__ import annotations

from holdfast.cli.commands.demo import demo

if __name__ == "__main__":
    demo()
