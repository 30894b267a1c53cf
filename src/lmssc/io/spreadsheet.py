"""Escape text in CSV files that a spreadsheet would evaluate as a formula, and undo it when reading."""

import re

# Characters that start a formula; the wide forms are those of East Asian keyboards.
START = "[=+\\-@\t\r\n＝＋－＠]"
FORMULA = re.compile(f"'*{START}")
ESCAPED = re.compile(f"'+{START}")
PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def escape_formula(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would evaluate; plain numbers are unchanged.

    Text that already looks escaped gets one more, so that `unescape_formula` restores every text.

    Examples
    --------
    >>> [escape_formula(text) for text in ("=1+1", "'=1+1", "-1.5", "a-b", "'tis")]
    ["'=1+1", "''=1+1", '-1.5', 'a-b', "'tis"]
    """
    return f"'{text}" if FORMULA.match(text) and not PLAIN_NUMBER.fullmatch(text) else text


def unescape_formula(text: str) -> str:
    """Restore the text that `escape_formula` was given.

    Examples
    --------
    >>> [unescape_formula(text) for text in ("'=1+1", "''=1+1", "-1.5", "'tis", "")]
    ['=1+1', "'=1+1", '-1.5', "'tis", '']
    """
    return text[1:] if text.startswith("'") and ESCAPED.match(text) else text
