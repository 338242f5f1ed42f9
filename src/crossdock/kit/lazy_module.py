"""Modules that are read when they are first used: for what is heavy and what most processes never need.

    if TYPE_CHECKING:
        from crossdock.engines.items import dynamodb
    else:
        dynamodb = lazy_module("crossdock.engines.items.dynamodb")

Whoever checks types or import contracts sees an ordinary import.
"""

from __future__ import annotations

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType


def lazy_module(name: str) -> ModuleType:
    """The module, with its code not run before an attribute is asked for. Its parent packages are imported.

    Raises ModuleNotFoundError at once for a module that there is not.
    """
    if name in sys.modules:
        return sys.modules[name]
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"There is no module {name}.", name=name)
    loader = spec.loader = LazyLoader(spec.loader)
    module = module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module
