"""Documentation of the public API: the names in `judged` and in `__all__` of each component."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import judged
from word_list import listed

SOURCE = Path(judged.__file__).parent
CORE = ("results", "data", "stats", "scoring", "comparison", "diagnosis")
# Fields of results that explain themselves; further ones are in parameters.md.
COMMON_FIELDS = {"doc_id", "query", "query_id", "name", "notes", "path", "text", "title"}
RANX_CLASSES = {"Qrels", "Run"}  # judged.scoring.compat.ranx names its classes as ranx does


def class_names() -> Counter[str]:
    """Count the definitions of each class name in src/judged."""
    texts = (path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    return Counter(name for text in texts for name in re.findall(r"^ *class (\w+)", text, flags=re.MULTILINE))


CLASS_NAMES = class_names()


def public_objects() -> dict[str, Any]:
    """Return public functions and classes by qualified name, each once."""
    objects: dict[int, tuple[str, Any]] = {}
    paths = (path for component in CORE for path in sorted((SOURCE / component).rglob("__init__.py")))
    modules = (".".join(path.parent.relative_to(SOURCE.parent).parts) for path in paths)
    for module_name in ("judged", *modules):
        module = importlib.import_module(module_name)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                objects.setdefault(id(value), (f"{module_name}.{name}", value))
    return dict(objects.values())


def documented_parameters(docstring: str) -> set[str]:
    """Return the names in "Parameters" and "Attributes" of a docstring, and those in backticks in the text above."""
    sections = re.split(r"\n(?=[A-Z][A-Za-z ]+\n-{3,}\n)", docstring)
    names = set(re.findall(r"`(\w+)`", sections[0]))
    for section in sections:
        title, _, body = section.partition("\n")
        if title in {"Parameters", "Attributes", "Other Parameters"}:
            for line in re.findall(r"^(?! )([*\w, ]+?)(?: ?: .*)?$", body, flags=re.MULTILINE):
                names.update(name.strip(" *") for name in line.split(","))
    return names


def missing_sections(name: str, value: Any) -> list[str]:
    """Return what the docstring of a function or class lacks: parameters, "Returns", "Raises", an example.

    A result of a class of judged is described by that class, and one that the summary states by the summary.
    Classes of results, which users receive and do not create, need no example; nor do exceptions.
    """
    docstring = inspect.getdoc(value) or ""
    missing = [f"parameter {parameter}" for parameter in sorted(parameters(value) - documented_parameters(docstring))]
    if inspect.isclass(value):
        is_created = name.count(".") == 1 and not issubclass(value, BaseException)
        members = [member for key, member in vars(value).items() if not key.startswith("_")]
        if is_created and not any(">>>" in (inspect.getdoc(described) or "") for described in (value, *members)):
            missing.append("example")
        return missing
    annotation = inspect.signature(value).return_annotation
    result = getattr(annotation, "__name__", str(annotation))
    is_known = (
        result == "None" or result in CLASS_NAMES or docstring.startswith(("Return ", "Yield ", "Convert ", "Format "))
    )
    if not is_known and not has_section(docstring, "Returns|Yields"):
        missing.append("Returns")
    source = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(value))))
    if any(isinstance(node, ast.Raise) for node in ast.walk(source)) and not has_section(docstring, "Raises"):
        missing.append("Raises")
    if ">>>" not in docstring:
        missing.append("example")
    return missing


def has_section(docstring: str, title: str) -> bool:
    """Whether a numpydoc docstring has a section of this title (a regular expression)."""
    return bool(re.search(rf"^({title})\n-{{3,}}$", docstring, flags=re.MULTILINE))


def parameters(value: Any) -> set[str]:
    """Return the parameters of a function or constructor that no comment in the class body describes."""
    if not inspect.isclass(value):
        return set(inspect.signature(value).parameters)
    if not dataclasses.is_dataclass(value):
        return set(inspect.signature(value).parameters) if "__init__" in vars(value) else set()
    own = vars(value).get("__annotations__", {})  # fields of base classes are described there
    fields = {field.name for field in dataclasses.fields(value) if field.init and field.name in own}
    source = inspect.getsource(value)
    inline = re.findall(r"^    (\w+): .*  # \S", source, flags=re.MULTILINE)
    below_comment = re.findall(r"^    # .*\n    (\w+): ", source, flags=re.MULTILINE)
    in_comment = [
        name
        for names in re.findall(r"^    # ([a-z]\w*(?:, \w+)+): ", source, flags=re.MULTILINE)
        for name in names.split(", ")
    ]
    fields -= {*inline, *below_comment, *in_comment, *listed()[0], *COMMON_FIELDS}
    return {name for name in fields if not name.startswith("_")}


OBJECTS = public_objects()


@pytest.mark.parametrize("name", OBJECTS)
def test_public_objects_are_documented(name: str) -> None:
    assert missing_sections(name, OBJECTS[name]) == []


def test_no_class_name_is_defined_twice() -> None:
    assert {name for name, count in CLASS_NAMES.items() if count > 1} == RANX_CLASSES
