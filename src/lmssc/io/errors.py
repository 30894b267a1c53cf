"""Errors that end a command with one line and an exit code."""


class InputFileError(ValueError):
    """A file that cannot be used; the message names the file and the line or column. Commands exit with code 2."""


class CommandError(Exception):
    """A command that cannot be carried out; shown in one line, without a traceback."""

    exit_code = 2


class OutputError(CommandError):
    """Output that cannot be written: no permission, no space."""

    exit_code = 3
