"""Pages from templates, in which all text is escaped, and numbers as pages show them."""

from functools import lru_cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from lmssc.model_selection.intervals import wilson


@lru_cache
def environment(package: str = "lmssc.report") -> Environment:
    """Templates of a package, and those that all pages share.

    Parameters
    ----------
    package : str
        Its folder ``templates`` is searched first, then that of `lmssc.report`.

    Returns
    -------
    Environment
        It escapes every value, and refuses a template that names a value that is not given.

    Examples
    --------
    >>> environment().from_string("<p>{{ text }}</p>").render(text="1 < 2")
    '<p>1 &lt; 2</p>'
    """
    packages = dict.fromkeys([package, "lmssc.report"])
    return Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_macro(template: str, macro: str, *args: Any, **context: Any) -> Markup:
    """Call one macro of a shared template.

    Examples
    --------
    >>> render_macro("parts.html", "value", "1 < 2")
    Markup('1 &lt; 2')
    """
    return getattr(environment().get_template(template).module, macro)(*args, **context)


def source(name: str) -> str:
    """Text of a file among the shared templates, as it is.

    Examples
    --------
    >>> "prefers-color-scheme: dark" in source("style.css")
    True
    """
    env = environment()
    assert env.loader is not None
    return env.loader.get_source(env, name)[0]


def percent(share: float) -> str:
    """A share as a percentage with one digit; a dash for NaN.

    Examples
    --------
    >>> percent(0.4567), percent(float("nan"))
    ('45.7 %', '–')
    """
    return "–" if share != share else f"{100 * share:.1f} %"


def between(share: float, n: int) -> str:
    """The 95 % interval of a share that was measured on `n` samples.

    Examples
    --------
    >>> between(0.9, 10)
    '59.6 % to 98.2 %'
    """
    low, high = wilson(share, n)
    return f"{percent(low)} to {percent(high)}"
