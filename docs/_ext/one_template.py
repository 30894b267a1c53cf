"""Compile the template of docstrings once: numpydoc compiles it for each of them, a sixth of the time of a build."""

from functools import partial
from typing import Any

from jinja2.bccache import Bucket, BytecodeCache
from numpydoc import docscrape_sphinx


class CompiledTemplates(BytecodeCache):
    """Code of templates, in memory."""

    def __init__(self) -> None:
        self.compiled: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give a template its code, if it is known."""
        if bucket.key in self.compiled:
            bucket.bytecode_from_string(self.compiled[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code of a template."""
        self.compiled[bucket.key] = bucket.bytecode_to_string()


def setup(app: Any) -> dict[str, bool]:
    """Let numpydoc use it."""
    environment = partial(docscrape_sphinx.SandboxedEnvironment, bytecode_cache=CompiledTemplates())
    docscrape_sphinx.SandboxedEnvironment = environment
    return {"parallel_read_safe": True}
