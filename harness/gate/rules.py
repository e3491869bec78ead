"""What the static rules allow: plain tables, one place to read or change them.

The verdict never depends on these tables catching everything: the sandbox holds. They keep candidates readable,
deterministic and free of stored answers, and they catch the known ways of hiding code from a reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


RULES: Mapping[str, str] = {
    "S01": "files: only policy.py and flat .py or .json files, within the caps on number and bytes",
    "S02": "encoding: plain UTF-8 without BOM, NUL or a coding cookie; the text parsed is the text compiled",
    "S03": "no invisible, control, bidirectional, private-use or unassigned code points; identifiers are ASCII",
    "S04": "the source parses",
    "S05": "imports only from the allow-list",
    "S06": "no forbidden built-in, module or library call",
    "S07": "no private or dunder access, no attribute chosen at run time",
    "S08": "decorators, metaclasses and class creation are plain; no async",
    "S09": "size: line length, syntax nodes, nesting, function length and complexity",
    "S10": "policy.py defines class Policy with __init__, observe, settle and answer",
    "S11": "no names, ids or phrases of the development data, no data set's name, no gold field",
    "S12": "no long, encoded or high-entropy constants",
    "S13": "no big tables of literals and no answer keys",
    "S14": "no source of randomness or identity that differs between runs",
    "D01": "not the tree of an earlier attempt",
    "D02": "not an earlier attempt's syntax tree but for names, comments and order",
    "D03": "not an earlier attempt's answers and evidence on the smoke sample",
    "K01": "the smoke run ends without a crash",
    "K02": "the smoke run ends in time",
    "K03": "the smoke run stays within its memory",
    "K04": "the smoke run keeps to the protocol and its output limits",
    "K05": "the smoke run answers at least one question",
    "K06": "a refused request is not asked for again and again",
    "R01": "the code does what the hypothesis says",
    "R02": "no shortcut made for single questions or for one data set",
    "R03": "no text that addresses or steers the reviewer",
    "R04": "no reach beyond the contract: files, network, other processes, the runner",
    "R05": "evidence names the windows that were used, and the budget is respected",
    "R06": "the reviewer returned a complete verdict in the asked form",
}
"""Rule ids of the gate with their one-line meaning; quoted by constitution, findings, prompts and records."""


@dataclass(frozen=True, slots=True)
class StaticLimits:
    """Parameters of the static rules. None is given by the source; sizes keep a package within a reviewer's window."""

    files: int = 12
    file_bytes: int = 48_000
    total_bytes: int = 64_000
    line_length: int = 160
    nodes: int = 8_000
    """Syntax nodes of one file."""
    depth: int = 40
    """Nesting of syntax nodes."""
    function_lines: int = 120
    complexity: int = 30
    """Branches of one function plus one (McCabe)."""
    string_chars: int = 1_500
    """One string constant that is not a docstring."""
    strings_chars: int = 12_000
    """All string constants of one file together, docstrings not counted."""
    run_chars: int = 40
    """An unbroken run of base64 or hexadecimal characters."""
    table_items: int = 96
    """Constants in one list, tuple, set or dict, nested ones included."""
    constants: int = 900
    """Constants of one file."""
    answer_letters: int = 8
    """Choice letters in one table or one string."""
    number_digits: int = 15
    """Digits of one integer constant."""

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> StaticLimits:
        """Limits from a mapping of parameter names; names that are no limit are left to other rules."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: int(value) for name, value in parameters.items() if name in known})


MODULES: frozenset[str] = _set(
    "__future__ abc bisect collections collections.abc contextlib dataclasses datetime enum fractions functools heapq "
    "itertools json math numbers operator random re statistics string textwrap typing unicodedata "
    "numpy numpy.typing numpy.linalg simplemma bm25s Stemmer dateparser policies.contract policies.blocks"
)
"""Modules a candidate may import; ``policies.blocks`` with everything below it."""

PACKAGES: frozenset[str] = frozenset({"policies.blocks"})
"""Packages whose submodules may be imported too."""

BUILTINS: frozenset[str] = _set(
    "exec eval compile open __import__ globals locals vars dir input breakpoint exit quit help memoryview delattr "
    "__builtins__ __loader__ __spec__ __file__ __build_class__ copyright credits license"
)
"""Built-in names that may not appear, called or not."""

UNSTABLE_BUILTINS: frozenset[str] = frozenset({"hash", "id"})
"""Built-ins whose value differs between processes, or serves to key stored answers."""

UNSAFE_MODULE_NAMES: frozenset[str] = _set(
    "os sys builtins io socket ctypes pickle marshal inspect gc importlib subprocess threading multiprocessing signal "
    "shutil pathlib tempfile codecs types traceback linecache runpy pkgutil site atexit faulthandler mmap fcntl "
    "resource select selectors asyncio ssl http urllib platform pty pwd grp zlib base64 binascii hashlib shelve "
    "sqlite3 ast dis code codeop weakref tracemalloc nt posix time secrets uuid cffi copyreg sysconfig"
)
"""Module names that may not be reached as an attribute or from-import of an allowed module."""

CALLS: frozenset[str] = _set(
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

ATTRIBUTES: frozenset[str] = _set(
    "tofile dump ctypes fromfile format_map f_globals f_locals f_back gi_frame gi_code cr_frame tb_frame mro "
    "func_globals modules environ system popen load_extension setflags from_pretrained"
)
"""Attribute names that may not appear on anything."""

DUNDERS: frozenset[str] = _set(
    "__init__ __post_init__ __len__ __iter__ __next__ __getitem__ __contains__ __eq__ __ne__ __lt__ __le__ __gt__ "
    "__ge__ __hash__ __repr__ __str__ __bool__ __call__ __add__ __sub__ __mul__ __enter__ __exit__ __slots__ __all__"
)
"""Dunder names that may be defined in a class; only ``__init__`` and ``__post_init__`` may be read as attributes."""

DUNDER_READS: frozenset[str] = frozenset({"__init__", "__post_init__", "__name__"})

DECORATORS: frozenset[str] = _set(
    "dataclass dataclasses.dataclass staticmethod classmethod property functools.lru_cache functools.cache "
    "functools.cached_property functools.wraps functools.total_ordering contextlib.contextmanager typing.overload "
    "typing.final abc.abstractmethod enum.unique typing.runtime_checkable"
)
"""Decorators from outside the package; the package's own functions may decorate too."""

METACLASSES: frozenset[str] = frozenset({"abc.ABCMeta", "enum.EnumMeta"})

RANDOM_STATE: frozenset[str] = frozenset({"random.Random", "numpy.random.default_rng", "numpy.random.Generator"})
"""The only uses of randomness: generators made from an explicit seed."""

CLOCKS: frozenset[str] = frozenset({"now", "today", "utcnow"})

DATA_SETS: frozenset[str] = _set(
    "egolife egolifeqa egor1 videomme lvbench egoschema nextqa lifedialbench mlvu longmemeval locomo hdepic"
)
"""Names of data sets, as they look without separators."""

GOLD_FIELDS: frozenset[str] = _set(
    "groundtruth answerkey goldanswer goldlabel targettime oracletime correctanswer correctchoice correctidx"
)
"""Names of fields that are never shown to a policy."""

METHODS: Mapping[str, int] = {"__init__": 1, "observe": 1, "settle": 0, "answer": 1}
"""Methods of ``Policy`` and how many arguments each takes beside self."""
