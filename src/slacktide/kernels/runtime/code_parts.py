"""Numba's code libraries for kernels: an entry is linked and translated once, with all that it calls.

These are subclasses that only kernels are compiled with: nothing of Numba's is replaced. Import this through
:func:`slacktide.kernels.runtime.linking.pipeline`, which knows the versions of Numba it was written for.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from numba.core import codegen, compiler

JITCodeLibrary: Any = codegen.JITCodeLibrary  # the bases have no types
JITCPUCodegen: Any = codegen.JITCPUCodegen
Compiler: Any = compiler.Compiler


class Part(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel: a part of what calls it, and no machine code of its own."""

    _complete: Any = None

    def finalize(self) -> None:
        """Nothing is linked or optimised yet."""
        for called in self._linking_libraries:
            self._reload_init.update(called._reload_init)
        self._finalized = True

    def alone(self) -> Any:
        """The LLVM module without what the kernel calls."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """The LLVM module with all that the kernel calls: for a caller that is no kernel."""
        if self._complete is None:
            module = self.alone().clone()
            for called in with_all(self._linking_libraries):
                module.link_in(module_of(called), preserve=True)
            self._complete = module
        return self._complete


class Whole(JITCodeLibrary):  # type: ignore[misc]
    """The code of an entry: each kernel below it is linked once."""

    _linking_libraries: list[Any]

    def finalize(self) -> None:
        """Link, optimise and translate."""
        self._linking_libraries = [Alone(library) for library in with_all(self._linking_libraries)]
        super().finalize()


class Alone:
    """A code library as :class:`Whole` links it."""

    def __init__(self, library: Any) -> None:
        self._library, self._reload_init = library, library._reload_init

    def _get_module_for_linking(self) -> Any:
        return module_of(self._library)


def module_of(library: Any) -> Any:
    """The LLVM module of a library, for a caller that links what a kernel calls by itself."""
    return library.alone() if isinstance(library, Part) else library._get_module_for_linking()


def with_all(libraries: list[Any]) -> list[Any]:
    """These code libraries and, of kernels among them, what they call in turn; each once."""
    found: dict[Any, None] = {}
    left = list(reversed(libraries))
    while left:
        library = left.pop()
        if library not in found:
            found[library] = None
            if isinstance(library, Part):
                left += reversed(library._linking_libraries)
    return list(found)


class Codegen(JITCPUCodegen):  # type: ignore[misc]
    """Numba's own code generator, engine and all, but for the libraries that it makes.

    ``parts`` has the names of functions whose code exists only as a part of what calls them.
    """

    def __init__(self, usual: Any, parts: Container[str]) -> None:
        self.__dict__.update(usual.__dict__)
        self.parts = parts
        self.internal_functions: dict[Any, Any] = {}

    def create_library(self, name: str, **options: Any) -> Any:
        """The library that code of this name goes into."""
        return (Part if name in self.parts else Whole)(self, name, **options)

    def set_env(self, env_name: str, env: Any) -> None:
        """Tell machine code where its environment is; a part is no machine code and needs none."""
        if self._engine.is_symbol_defined(env_name):
            super().set_env(env_name, env)


def pipeline_for(parts: Container[str]) -> type:
    """Numba's usual steps, with :class:`Codegen`."""
    codegens: dict[int, Codegen] = {}

    class Pipeline(Compiler):  # type: ignore[misc]
        def __init__(self, typingctx: Any, targetctx: Any, *rest: Any) -> None:
            targetctx.refresh()
            usual = targetctx.codegen()
            if not isinstance(usual, Codegen):
                ours = codegens.setdefault(id(usual._engine), Codegen(usual, parts))  # which keeps the engine alive
                targetctx = targetctx.subtarget(_internal_codegen=ours)
                targetctx.cached_internal_func = ours.internal_functions
            super().__init__(typingctx, targetctx, *rest)

    return Pipeline
