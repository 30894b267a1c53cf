"""Text in CSV files that a spreadsheet does not take for a formula, and that is read back as it was."""

import re

# What makes a spreadsheet compute a cell; the wide forms are those of East Asian keyboards.
START = "[=+\\-@\t\r\n＝＋－＠]"
FORMULA = re.compile(f"'*{START}")
ESCAPED = re.compile(f"'+{START}")
PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def escape_formula(text: str) -> str:
    """The text, with an apostrophe before it if a spreadsheet would compute it; plain numbers stay as they are.

    Text that looks escaped already gets one more, so that `unescape_formula` gives back each text as it was.

    Examples
    --------
    >>> [escape_formula(text) for text in ("=1+1", "'=1+1", "-1.5", "a-b", "'tis")]
    ["'=1+1", "''=1+1", '-1.5', 'a-b', "'tis"]
    """
    return f"'{text}" if FORMULA.match(text) and not PLAIN_NUMBER.fullmatch(text) else text


def unescape_formula(text: str) -> str:
    """The text that `escape_formula` was given.

    Examples
    --------
    >>> [unescape_formula(text) for text in ("'=1+1", "''=1+1", "-1.5", "'tis", "")]
    ['=1+1', "'=1+1", '-1.5', "'tis", '']
    """
    return text[1:] if text.startswith("'") and ESCAPED.match(text) else text
