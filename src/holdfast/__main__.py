"""`python -m holdfast`: the same as the `holdfast` command."""

from holdfast.cli.main import main

if __name__ == "__main__":
    main(prog_name="holdfast")
