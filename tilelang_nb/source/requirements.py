"""The packages that this one needs: what is said where one is missing or is another version, and what to install."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable

# Module -> what pip is asked for.
NEEDED = {
    "numpy": "numpy",
    "ml_dtypes": "ml_dtypes",
    "tvm": "apache-tvm==0.27.*",
    "tvm_ffi": "apache-tvm-ffi",
}
WIDGETS = {"ipywidgets": "ipywidgets", "anywidget": "anywidget"}


def missing(modules: Iterable[str]) -> list[str]:
    """Those of these modules that this Python cannot find; none of them is imported."""
    return [name for name in modules if not _is_there(name)]


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # it is loaded, by somebody who made the module by hand
        return True


def require() -> None:
    """ImportError where a package that nothing works without is missing; it names all of them and what to install."""
    absent = missing(NEEDED)
    if absent:
        raise ImportError(f"tilelang-nb needs {_listed(absent)}, {_not_here(absent)}", name=absent[0])


def without_widgets() -> str | None:
    """What to say where the inspector cannot be shown for want of a package; None where it can."""
    absent = missing(WIDGETS)
    return f"the inspector needs {_listed(absent)}, {_not_here(absent)}" if absent else None


def explained(error: ImportError) -> ImportError:
    """An import that failed inside a package that is there, most often another version, with what to install."""
    name = (error.name or "").partition(".")[0]
    if name not in NEEDED:
        return error
    place = getattr(sys.modules.get(name), "__file__", None)
    where = f"the package `{name}` of this Python ({place})" if place else f"the package `{name}`"
    return ImportError(
        f"tilelang-nb cannot use {where}: {error}. It is made for {NEEDED[name]}: {_install([name])}, "
        "then start Python anew",
        name=error.name,
        path=error.path,
    )


def _not_here(absent: list[str]) -> str:
    each = "which is" if len(absent) == 1 else "which are"
    return f"{each} not installed for {sys.executable}: {_install(absent)}"


def _listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return " and ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))


def _install(modules: list[str]) -> str:
    packages = [(NEEDED | WIDGETS)[name] for name in modules]
    return f"`pip install {' '.join(repr(package) if '*' in package else package for package in packages)}`"
