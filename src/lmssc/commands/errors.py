"""What a command raises to end with one line and exit code 2."""


class CommandError(Exception):
    """A call that cannot be carried out as it was made; shown in one line, without traceback."""
