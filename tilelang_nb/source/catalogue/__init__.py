"""Every diagnostic: one frozen class per code, by family, and its page `pages/TLxxx.md`.

Fields that hold code or a name (`name`, `buffer`, `condition`) are given bare: the texts put the backticks.  Fields
that hold a phrase (`what`, `problem`, `remedy`) bring their own: `remedy="use `T.copy`"`.

Adding one: its class in the family's module, its page, and the place that raises it.  `CATALOGUE` maps codes to
classes.
"""

from __future__ import annotations

from ..diagnostic import Message
from .execution import *
from .language import *
from .names import *
from .operations import *
from .sources import *
from .syntax import *


def _classes(base: type[Message]) -> list[type[Message]]:
    return [cls for sub in base.__subclasses__() for cls in ([sub] if "code" in vars(sub) else []) + _classes(sub)]


CATALOGUE: dict[str, type[Message]] = {cls.code: cls for cls in sorted(_classes(Message), key=lambda cls: cls.code)}
