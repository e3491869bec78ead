"""Inside the sandbox: modules compiled from memory, so that no file, .pyc, .pth or folder can stand in for them.

Stand-alone: it is executed first, before any other module of ours can be imported.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType


class MemoryModules(MetaPathFinder, InspectLoader):
    """Serves modules from their sources; ``files`` maps paths such as ``policies/contract.py`` to text."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = dict(files)
        self._paths: dict[str, str] = {}
        for path in files:
            if path.endswith("/__init__.py"):
                self._paths[path.removesuffix("/__init__.py").replace("/", ".")] = path
            elif path.endswith(".py"):
                self._paths[path.removesuffix(".py").replace("/", ".")] = path

    @property
    def names(self) -> tuple[str, ...]:
        """Full names of the modules, sorted."""
        return tuple(sorted(self._paths))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's spec where it is ours; its origin is the path within the bundle."""
        where = self._paths.get(fullname)
        if where is None:
            return None
        spec = ModuleSpec(fullname, self, origin=where, is_package=self.is_package(fullname))
        spec.has_location = True
        return spec

    def is_package(self, fullname: str) -> bool:
        """Whether the module is a package."""
        return self._paths[fullname].endswith("/__init__.py")

    def get_source(self, fullname: str) -> str:
        """The text that is compiled (tracebacks show it)."""
        return self._files[self._paths[fullname]]

    def get_code(self, fullname: str) -> CodeType:
        """Compiled from text, so that an encoding cookie in it means nothing."""
        return compile(self.get_source(fullname), self._paths[fullname], "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        exec(self.get_code(module.__name__), module.__dict__)

    def get_data(self, path: str) -> bytes:
        """A file of the package, for ``pkgutil.get_data(__package__, "table.json")``."""
        try:
            return self._files[path.replace("\\", "/")].encode()
        except KeyError:
            raise FileNotFoundError(path) from None


class OwnNames(MetaPathFinder, InspectLoader):
    """Lets modules of one package import each other by bare name too. Last in line: it can shadow nothing."""

    def __init__(self, package: str, modules: MemoryModules) -> None:
        self._package = package
        self._names = set(modules.names)
        self._spec: ModuleSpec | None = None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A spec where the package has a module of this bare name."""
        if f"{self._package}.{fullname}" not in self._names:
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The very module of the package, so that it exists once."""
        module = import_module(f"{self._package}.{spec.name}")
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to run; the import system has replaced the spec, which is put back."""
        module.__spec__ = self._spec

    def get_source(self, fullname: str) -> str | None:
        """None: the source belongs to the module's full name."""
        return None


def run(prelude: Mapping[str, Mapping[str, str]]) -> None:
    """Make our modules importable and hand over to the runner."""
    modules = MemoryModules(prelude["files"])
    sys.meta_path.insert(0, modules)
    import_module("sandbox.runner").main(modules.names)
