"""Imports of optional dependencies, with a message that says which extra to install."""

from importlib import import_module
from types import ModuleType


def import_optional(module: str, *, purpose: str, extra: str) -> ModuleType:
    """Import `module`, or raise an error that names the extra of lmssc that installs it.

    Parameters
    ----------
    module : str
        Dotted name of the module.
    purpose : str
        What needs the module, a plural noun that begins the message, such as ``"figures"``.
    extra : str
        The extra of lmssc that installs it.

    Returns
    -------
    module
        The imported module.

    Raises
    ------
    ImportError
        If the module cannot be imported.

    Examples
    --------
    >>> import_optional("math", purpose="roots", extra="plot").sqrt(9.0)
    3.0
    >>> import_optional("no_such_module", purpose="figures", extra="plot")
    Traceback (most recent call last):
        ...
    ImportError: figures need no_such_module: pip install 'lmssc[plot]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{purpose} need {package}: pip install 'lmssc[{extra}]'") from error
