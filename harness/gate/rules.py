"""Tables of the static rules that are Python's own; imports, names and sizes stand in ``principles/constitution.toml``.

The verdict never depends on these tables catching everything: the sandbox holds. They keep candidates readable,
deterministic and free of stored answers, and they catch the known ways of hiding code from a reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


def names(text: str) -> frozenset[str]:
    """A set of the words of ``text``."""
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class StaticLimits:
    """Sizes of the static rules, as the constitution's ``[static.limits]`` names them."""

    files: int
    file_bytes: int
    total_bytes: int
    line_length: int
    nodes: int
    """Syntax nodes of one file."""
    depth: int
    """Nesting of syntax nodes."""
    function_lines: int
    complexity: int
    """Branches of one function plus one (McCabe)."""
    string_chars: int
    """One string constant that is not a docstring."""
    strings_chars: int
    """All string constants of one file together, docstrings not counted."""
    run_chars: int
    """An unbroken run of base64 or hexadecimal characters."""
    table_items: int
    """Constants in one list, tuple, set or dict, nested ones included."""
    constants: int
    """Constants of one file."""
    answer_letters: int
    """Choice letters in one table or one string."""
    number_digits: int
    """Digits of one numeric constant."""
    letters: int
    """Choice letters in a package, alone or in strings of nothing else."""
    numbers: int
    """Different large numbers in a package that are no multiples of ten."""
    round_below: int
    """Numbers below this are not counted."""
    name_chars: int
    """Characters of one identifier."""


UNSTABLE_BUILTINS: frozenset[str] = frozenset({"hash", "id"})
"""Built-ins whose value differs between processes, or serves to key stored answers."""

UNSAFE_MODULE_NAMES: frozenset[str] = names(
    "os sys builtins io socket ctypes pickle marshal inspect gc importlib subprocess threading multiprocessing signal "
    "shutil pathlib tempfile codecs types traceback linecache runpy pkgutil site atexit faulthandler mmap fcntl "
    "resource select selectors asyncio ssl http urllib platform pty pwd grp zlib base64 binascii hashlib shelve "
    "sqlite3 ast dis code codeop weakref tracemalloc nt posix time secrets uuid cffi copyreg sysconfig"
)
"""Module names that may not be reached as an attribute or from-import of an allowed module."""

CALLS: frozenset[str] = names(
    "dataclasses.make_dataclass typing.get_type_hints typing.ForwardRef string.Formatter operator.attrgetter "
    "operator.methodcaller functools.singledispatch functools.singledispatchmethod enum.EnumType "
    "contextlib.redirect_stdout contextlib.redirect_stderr numpy.load numpy.save numpy.savez numpy.savez_compressed "
    "numpy.loadtxt numpy.savetxt numpy.genfromtxt numpy.fromfile numpy.memmap numpy.fromregex numpy.DataSource "
    "numpy.open_memmap json.load json.dump bm25s.hf bm25s.utils.corpus"
)
"""Dotted names of allowed modules that may not be used."""

CALL_PREFIXES: tuple[str, ...] = (
    "numpy.lib.", "numpy.ctypeslib", "numpy.f2py", "numpy.testing", "numpy.distutils", "numpy.core", "numpy.show_",
)  # fmt: skip
"""Parts of allowed modules that may not be used."""

DUNDERS: frozenset[str] = names(
    "__init__ __post_init__ __len__ __iter__ __next__ __getitem__ __contains__ __eq__ __ne__ __lt__ __le__ __gt__ "
    "__ge__ __hash__ __repr__ __str__ __bool__ __call__ __add__ __sub__ __mul__ __enter__ __exit__ __slots__ __all__"
)
"""Dunder names that may be defined in a class; only ``__init__`` and ``__post_init__`` may be read as attributes."""

DUNDER_READS: frozenset[str] = frozenset({"__init__", "__post_init__", "__name__"})

DECORATORS: frozenset[str] = names(
    "dataclass dataclasses.dataclass staticmethod classmethod property functools.lru_cache functools.cache "
    "functools.cached_property functools.wraps functools.total_ordering contextlib.contextmanager typing.overload "
    "typing.final abc.abstractmethod enum.unique typing.runtime_checkable"
)
"""Decorators from outside the package; the package's own functions may decorate too."""

METACLASSES: frozenset[str] = frozenset({"abc.ABCMeta", "enum.EnumMeta"})

RANDOM_STATE: frozenset[str] = frozenset({"random.Random", "numpy.random.default_rng", "numpy.random.Generator"})
"""The only uses of randomness: generators made from an explicit seed."""

CLOCKS: frozenset[str] = frozenset({"now", "today", "utcnow"})

METHODS: Mapping[str, int] = {"__init__": 1, "observe": 1, "settle": 0, "answer": 1}
"""Methods of ``Policy`` and how many arguments each takes beside self."""
