"""What a command raises to end with one line and an exit code."""


class CommandError(Exception):
    """A call that cannot be carried out as it was made; shown in one line, without traceback."""

    exit_code = 2


class OutputError(CommandError):
    """What was to be written cannot be: no permission, no space."""

    exit_code = 3
