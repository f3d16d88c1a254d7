"""Shows the roles of docstrings on the site: ``:class:`~a.b.C``` becomes ``C`` as code."""

from __future__ import annotations

import re
from typing import Any

from griffe import Docstring, Extension, Object

_ROLE = re.compile(r":[a-z]{2,9}:`~?(?:[\w.]{1,99}\.)?(\w{1,99})`")


class Roles(Extension):
    """Rewrites every docstring as it is read."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Replace the roles in the docstring of a module, class, function or attribute."""
        if isinstance(obj.docstring, Docstring):
            obj.docstring.value = _ROLE.sub(r"`\1`", obj.docstring.value)
