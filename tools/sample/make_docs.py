# Requirements: Python 3.11 only, no packages.
"""Write the documents of the sample collection from the Python standard library.

Reads the public modules of the running Python, selects functions, classes,
methods, and properties with their own docstring, and writes one JSON object
per line to a gzipped file:

    {"doc_id", "title", "text", "module", "kind"}

The same Python version on the same kind of system writes the same bytes:
documents are sorted, and the gzip header has no time and no file name. Run it
outside a virtual environment, because its path changes a few signatures.

Usage: python tools/sample/make_docs.py [--out PATH]
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import inspect
import json
import pkgutil
import re
import sys
import types
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

REPO = Path(__file__).resolve().parents[2]
DEFAULT_OUT = REPO / "src" / "judged" / "data" / "sample" / "pydocs" / "docs.jsonl.gz"

MAX_TEXT = 700
MIN_TEXT = 20
MAX_TITLE = 110

# Packages that users do not search for as a library, that print or open a
# window when imported, or that describe one toolkit or protocol at great length.
SKIP_PACKAGES = {
    "antigravity", "curses", "ensurepip", "idlelib", "lib2to3", "pydoc_data",
    "imaplib", "poplib", "termios", "test", "this", "tkinter", "turtle",
    "turtledemo", "xmlrpc",
}  # fmt: skip

# Deprecated in 3.11 (most of them gone in 3.12 or 3.13).
DEPRECATED = {
    "aifc", "asynchat", "asyncore", "audioop", "cgi", "cgitb", "chunk", "crypt",
    "distutils", "imghdr", "imp", "mailcap", "msilib", "nis", "nntplib",
    "optparse", "ossaudiodev", "pipes", "smtpd", "sndhdr", "spwd", "sunau",
    "telnetlib", "uu", "xdrlib",
}  # fmt: skip

# Public by name, but internal to another module, or a tool with few users.
INTERNAL = {
    "ast", "bdb", "cmath", "codeop", "genericpath", "modulefinder", "ntpath",
    "nturl2path", "opcode", "pickletools", "posix", "posixpath", "pyclbr",
    "pydoc", "pyexpat", "readline", "rlcompleter", "site", "sre_compile",
    "sre_constants", "sre_parse", "symtable", "tabnanny", "trace", "venv", "zipimport",
}  # fmt: skip

# Packages with internal submodules: only names at the top level count.
TOP_ONLY = {
    "asyncio", "concurrent.futures", "ctypes", "dbm", "email", "encodings",
    "importlib", "importlib.metadata", "importlib.resources", "json",
    "multiprocessing", "re", "sqlite3", "tomllib", "unittest", "wsgiref",
    "xml.dom", "xml.parsers", "xml.sax", "zoneinfo",
}  # fmt: skip

# Submodules that are public although TOP_ONLY contains their package.
EXTRA_MODULES = (
    "email.message", "email.utils", "importlib.metadata",
    "importlib.resources", "importlib.util", "multiprocessing.pool",
    "multiprocessing.shared_memory", "os.path", "unittest.mock",
    "wsgiref.simple_server", "xml.dom.minidom",
)  # fmt: skip

# Modules whose methods are documents. Of other modules, only functions and
# classes are documents.
WITH_METHODS = {
    "argparse", "array", "asyncio", "builtins", "collections",
    "concurrent.futures", "configparser", "contextlib", "csv", "datetime",
    "difflib", "fractions", "functools", "graphlib", "html.parser", "io",
    "ipaddress", "itertools", "json", "logging", "multiprocessing.pool", "os",
    "pathlib", "queue", "random", "re", "sched", "shelve", "shlex", "socket",
    "sqlite3", "statistics", "string", "struct", "subprocess", "tarfile",
    "tempfile", "textwrap", "threading", "timeit", "traceback", "tracemalloc",
    "unittest", "unittest.mock", "urllib.request", "uuid", "weakref",
    "xml.etree.ElementTree", "zipfile", "zoneinfo",
}  # fmt: skip

# Base classes and protocols, and classes whose methods repeat those of a
# better-known class.
NO_METHODS = re.compile(
    r"(Abstract\w*|\w*Transport|\w*Protocol|\w*ChildWatcher|\w*Policy|\w*Handle"
    r"|\w*Result|\w*Loader|\w*[Oo]pener|IPv6\w+|Handler|Stack\w+"
    r"|Traceback\w+|\w*HTMLCalendar|\w*TextCalendar|LoggerAdapter|TarInfo|bytearray|memoryview|BufferingFormatter|Buffered\w+|BytesIO|StringIO"
    r"|LifoQueue|SimpleQueue|UserDict|UserString|UserList|frozenset|FileIO)$"
)

# Families of wrappers of system calls with the same text, and names that
# modules export by mistake.
SKIP_NAMES = re.compile(
    r"os\.(W[A-Z]+|sched_\w+|set\w*id|get\w*(?<!p)id|posix_\w+|spawn\w+|exec\w+e"
    r"|\w*xattr|p?(read|write)v?|pread\w*|pwrite\w*|f?pathconf|sysconf|confstr|\w+_result"
    r"|\w*pty|tc\w+|set\w+groups|initgroups|m[ai][jn]or|makedev|eventfd\w*|f?statvfs)"
    r"|codecs\.(\w+_errors|Codec|Incremental\w+|Stream\w+)"
    r"|asyncio\.\w*(ChildWatcher|child_watcher|Policy|policy|Transport|Protocol)"
    r"|\w*Warning|typing\.Supports\w+|typing\.ParamSpec\w+|configparser\.Safe\w+"
    r"|enum\.global_\w+|importlib\.util\.(set_\w+|module_for_loader)"
    r"|inspect\.(\w*Block\w*|getblock|indentsize|walktree|ArgInfo|Arguments|Attribute)"
    r"|urllib\.request\.(\w*URLopener|HTTP\w+)|wsgiref\.\w+\.WSGIServer"
)

# Texts that the interpreter generates for missing docstrings.
BOILERPLATE = re.compile(r"(Initialize self\b|Create and return a new object|Alias for field number|Helper for pickle)")
DEPRECATED_TEXT = re.compile(r"^[^\n]{0,80}\bdeprecated\b", re.IGNORECASE)
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
SENTENCE_END = re.compile(r"[.!?:](?=\s)|\n")


@dataclass(frozen=True)
class Doc:
    """One document of the collection."""

    doc_id: str
    title: str
    text: str
    module: str
    kind: str


def is_public(name: str) -> bool:
    """Return whether no part of a dotted name starts with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))


def submodules(package: types.ModuleType) -> Iterator[str]:
    """Yield the names of the public submodules of a package, at any depth."""
    if package.__name__ in TOP_ONLY:
        return
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if not is_public(info.name) or info.name.split(".")[-1] == "tests":
            continue
        yield info.name
        if info.ispkg and (child := load(info.name)) is not None:
            yield from submodules(child)


def load(name: str) -> types.ModuleType | None:
    """Import a module, or return None if this system does not support it."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError, AttributeError):  # a module for another system
        return None


def module_names() -> list[str]:
    """Return the public modules in a fixed order."""
    top = set(sys.stdlib_module_names) - SKIP_PACKAGES - DEPRECATED - INTERNAL
    names = {name for name in top if is_public(name)} | set(EXTRA_MODULES)
    for name in sorted(names):
        module = load(name)
        if module is not None and hasattr(module, "__path__"):
            names.update(submodules(module))
    return sorted(names)


def belongs(obj: object, module: types.ModuleType) -> bool:
    """Return whether a module without __all__ defines an object."""
    module_name = getattr(obj, "__module__", None) or module.__name__
    name = module.__name__
    if name == "builtins":
        return True
    return module_name == name or module_name.startswith(name + ".") or module_name.lstrip("_") == name


def is_alias(module: types.ModuleType, name: str, obj: object) -> bool:
    """Return whether a name is an alias of an object that the module also exports by the object's name.

    A hidden base class of an exported class counts too: `socket.SocketType`
    is the C class below `socket.socket`.
    """
    real_name = getattr(obj, "__name__", name)
    if not isinstance(real_name, str) or real_name == name:
        return False
    if real_name not in getattr(module, "__all__", dir(module)):
        return False
    other = getattr(module, real_name, None)
    if isinstance(obj, type) and isinstance(other, type):
        return issubclass(other, obj)
    return other is obj


def public_members(module: types.ModuleType) -> Iterator[tuple[str, object]]:
    """Yield the public (name, object) pairs of a module."""
    listed = getattr(module, "__all__", None)
    names = dir(module) if listed is None else listed
    for name in sorted(set(names)):
        obj = getattr(module, name, None)
        if not is_public(name) or isinstance(obj, types.ModuleType):
            continue
        if is_alias(module, name, obj):
            continue
        if listed is not None or belongs(obj, module):
            yield name, obj


def clean(doc: object) -> str:
    """Return a docstring with even indentation and single blank lines."""
    if not isinstance(doc, str):
        return ""
    lines = [re.sub(r"\s+", " ", line).strip() for line in inspect.cleandoc(doc).split("\n")]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return ADDRESS.sub("", text)


def truncate(text: str, limit: int = MAX_TEXT) -> str:
    """Return the text up to the last sentence or line end before the limit."""
    if len(text) <= limit:
        return text
    ends = [match.end() for match in SENTENCE_END.finditer(text[: limit + 1])]
    end = ends[-1] if ends and ends[-1] > limit // 3 else limit
    return text[:end].rstrip()


def is_useful(text: str) -> bool:
    """Return whether a docstring is long enough, not generated, and not of a deprecated object."""
    return len(text) >= MIN_TEXT and not BOILERPLATE.match(text) and not DEPRECATED_TEXT.match(text)


def title_of(doc_id: str, obj: object) -> str:
    """Return the name with its signature, or only the name if the signature is unknown or long."""
    target = obj.__func__ if isinstance(obj, (staticmethod, classmethod)) else obj
    if isinstance(target, property):
        return doc_id
    try:
        signature = str(inspect.signature(target))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return doc_id
    # Defaults that depend on this machine are not documentation.
    signature = ADDRESS.sub("", signature).replace(repr(sys.executable), "sys.executable")
    signature = re.sub(r"^\((self|cls|type|\$self)(, /)?(, )?", "(", signature)
    title = doc_id + signature
    return title if len(title) <= MAX_TITLE else doc_id


def own_members(cls: type) -> dict[str, object]:
    """Return the members that a class defines itself or inherits from a hidden base class.

    A hidden base has no document, so its methods would be missing:
    `socket.socket.connect` is defined in the private module `_socket`.
    """
    members: dict[str, object] = {}
    for base in reversed(cls.__mro__):
        hidden = not is_public(f"{base.__module__}.{base.__name__}")
        if base is cls or (hidden and base is not object):
            members.update(base.__dict__)
    return members


def class_docs(doc_id: str, cls: type, module: str) -> Iterator[Doc]:
    """Yield a class and the methods that it defines itself."""
    text = clean(cls.__dict__.get("__doc__"))
    if is_useful(text):
        yield Doc(doc_id, title_of(doc_id, cls), truncate(text), module, "class")
    if module not in WITH_METHODS or NO_METHODS.fullmatch(cls.__name__):
        return
    for name, member in sorted(own_members(cls).items()):
        is_code = callable(member) or isinstance(
            member, (property, staticmethod, classmethod, types.GetSetDescriptorType)
        )
        if not is_public(name) or not is_code or isinstance(member, type):
            continue
        if cls is bytes and hasattr(str, name):
            continue  # the same operation in nearly the same words
        # A C function in a staticmethod has the docstring of staticmethod.
        text = clean(getattr(getattr(member, "__func__", member), "__doc__", None))
        if is_useful(text):
            method_id = f"{doc_id}.{name}"
            yield Doc(method_id, title_of(method_id, member), truncate(text), module, "method")


def member_docs(module: str, name: str, obj: object) -> Iterator[Doc]:
    """Yield the documents of one name of a module."""
    doc_id = name if module == "builtins" else f"{module}.{name}"
    if SKIP_NAMES.fullmatch(doc_id):
        return
    if isinstance(obj, type) and issubclass(obj, BaseException) and module != "builtins":
        return  # hundreds of one-line error classes would be noise
    if isinstance(obj, type):
        yield from class_docs(doc_id, obj, module)
    elif inspect.isroutine(obj) or hasattr(obj, "__wrapped__"):
        text = clean(getattr(obj, "__doc__", None))
        if is_useful(text):
            yield Doc(doc_id, title_of(doc_id, obj), truncate(text), module, "function")


def preference(doc: Doc) -> tuple[int, int, str]:
    """Return the sort key of names with the same docstring; the first is kept: built-in, short, early.

    Methods of str come before those of bytes, because most people search for text.
    """
    rank = 1 if doc.module == "builtins" else 2
    return (0 if doc.doc_id.startswith("str.") else rank, doc.doc_id.count("."), doc.doc_id)


def collect() -> list[Doc]:
    """Return one document per distinct docstring, sorted by name."""
    all_docs: list[Doc] = []
    for module_name in module_names():
        module = load(module_name)
        if module is not None:
            for name, obj in public_members(module):
                all_docs.extend(member_docs(module_name, name, obj))
    unique_docs: dict[str, Doc] = {}
    for doc in sorted(all_docs, key=preference):
        unique_docs.setdefault(doc.text, doc)
    by_name = {doc.doc_id: doc for doc in unique_docs.values()}
    return [by_name[doc_id] for doc_id in sorted(by_name)]


def write(docs: list[Doc], path: Path) -> None:
    """Write the documents as gzipped JSON lines with a fixed header."""
    body = "".join(json.dumps(asdict(doc), ensure_ascii=False) + "\n" for doc in docs)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(body.encode("utf-8"), compresslevel=9, mtime=0))


def main() -> None:
    """Write the documents of the running Python."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    args = parser.parse_args()
    if sys.version_info[:2] != (3, 11):
        print("note: the shipped documents were generated with Python 3.11", file=sys.stderr)
    warnings.simplefilter("ignore")
    docs = collect()
    write(docs, args.out)
    print(f"{len(docs)} documents, {args.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
