"""How kernels are compiled, and where their machine code is stored.

numba stores a compiled function under the digest of the one file that defines it. A kernel inlines
functions of other files, so numba alone would go on using its old machine code after one of those
has changed. Here the key is a digest of everything a kernel can be made of: the module that defines
it, all modules of the same project that this one imports, directly or not, and the modules that
define the record types it is called with (an overload lives beside its record). numba's own part of
the key adds its version, the signature and the processor.

The code lies in the user's cache folder, so that all checkouts, Ray workers and Spark executors of
a machine share it: a kernel is compiled once.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit, types
from numba.core import ir
from numba.core.caching import Cache, CompileResultCacheImpl, IndexDataCacheFile, _CacheLocator
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.runtime import rtsys
from numba.core.typed_passes import NopythonTypeInference
from numba.extending import intrinsic, register_jitable

from joins.machine.cache import cache_folder

F = TypeVar("F", bound=Callable[..., Any])

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([^\n#]+))", re.M
)
_NAME = re.compile(r"\w+")
_OURS = Path(__file__).resolve().parents[2]
"""The folder of the package `joins`."""
_INSTALLED = ("site-packages", "dist-packages")


@register_pass(mutates_CFG=False, analysis_only=False)
class _UnsignedIndices(FunctionPass):  # type: ignore[misc]
    """Declares every index of an array unsigned, after numba has inferred its type."""

    _name = "unsigned_indices"

    def __init__(self) -> None:  # numba's own is abstract
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        for place, signature in list(state.calltypes.items()):
            if isinstance(place, ir.SetItem) or getattr(place, "op", None) == "getitem":
                array, index, *value = signature.args
                if isinstance(array, types.Array):
                    del state.calltypes[place]  # it takes no key twice
                    arguments = (array, _unsigned(index), *value)
                    state.calltypes[place] = signature.replace(args=arguments)
        return True


def _unsigned(index: Any) -> Any:
    if isinstance(index, types.BaseTuple):
        return types.Tuple([_unsigned(kind) for kind in index])
    return types.uintp if isinstance(index, types.Integer) else index


class _KernelCompiler(CompilerBase):  # type: ignore[misc]
    """numba's compiler, with unsigned indices."""

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.add_pass_after(_UnsignedIndices, NopythonTypeInference)
        pipeline.finalize()
        return [pipeline]


KERNEL: Any = {"nogil": True, "_nrt": False, "pipeline_class": _KernelCompiler}
"""numba's options for a kernel and for what it inlines.

With ``_nrt`` numba counts a reference to every array at every call, atomically; with the many
arrays of a tree that made it three times as slow. A signed index is tested at every use, because a
negative one counts from the end; that took a fifth of a tree's time.
"""


def kernel(function: F) -> F:
    """Compile a function of arrays that allocates none: its callers own them all.

    No index of an array may be negative: -1 is not the last entry, it lies outside. ``make bounds``
    runs the tests with every index checked.
    """
    return _compiled(function, **KERNEL)


def read_only(column: np.ndarray) -> np.ndarray:
    """Return a view of *column* that nothing can be written through.

    For kernels that only read it: numba makes, and loads, another machine code for every mix of
    writable and read-only arguments.
    """
    view = column.view()
    view.flags.writeable = False
    return view


def inlined(function: F) -> F:
    """Put a function into the kernels that call it.

    A call copies every array's structure, some seventy words for the arrays of a tree; in a loop
    over tuples that costs several times what a short function does. Python still has the plain
    function: machine code that only Python would call took a fifth of all compiling.
    """
    return cast(F, register_jitable(forceinline=True, **KERNEL)(function))


def part_of(function: F) -> F:
    """Like `inlined`, with machine code that Python may call too: integers wrap as in kernels.

    What returns part of an array has to be inlined: kernels may take such a part, not return it.
    """
    return _compiled(function, nogil=True, inline="always")


def allocating(function: F) -> F:
    """Compile a function that allocates arrays."""
    return _compiled(function, nogil=True)


ARRAY, ITEM = object(), object()
"""In place of the type of an instruction's argument: any array; an entry of the first array."""


class CodeEmitter(NamedTuple):
    """numba's context and LLVM's builder where an instruction becomes part of a kernel."""

    context: Any
    builder: Any


def instruction(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a function for kernels of one that emits LLVM's code for it.

    The decorated function receives a `CodeEmitter` and the values of its arguments, of an array
    numba's structure; it returns a value of the type *result*. *arguments* are the types of the
    arguments, `ARRAY` or `ITEM`.
    """

    def declare(function: Callable[..., Any]) -> Any:
        @wraps(function)
        def typed(typing_context: Any, *actual: Any) -> Any:
            item = next((kind.dtype for kind in actual if isinstance(kind, types.Array)), None)
            kinds = [
                {ARRAY: kind, ITEM: item}.get(declared, declared)
                for kind, declared in zip(actual, arguments, strict=True)
            ]

            def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                from numba.np.arrayobj import make_array  # numba has it when it compiles

                emitted = function(
                    CodeEmitter(context, builder),
                    *(
                        make_array(kind)(context, builder, value)
                        if isinstance(kind, types.Array)
                        else value
                        for kind, value in zip(kinds, values, strict=True)
                    ),
                )
                return context.get_dummy_value() if result is types.void else emitted

            return result(*kinds), emit

        return intrinsic(typed)

    return declare


def _compiled(function: F, **options: Any) -> F:
    """Compile *function*; load its machine code from `cache_folder`, or store it there."""
    compiler: Any = njit  # numba declares no type for some of its options
    dispatcher = compiler(no_cfunc_wrapper=True, **options)(function)
    template = dispatcher.get_call_template
    # For numba a constant argument has a type of its own, for which it compiles the callee again.
    dispatcher.get_call_template = lambda args, kws: template(
        [types.unliteral(kind) for kind in args],
        {name: types.unliteral(kind) for name, kind in kws.items()},
    )
    # No folder to write to, or no source file: compile in every process.
    with contextlib.suppress(RuntimeError):
        dispatcher._cache = _KernelCache(function)
    return cast(F, dispatcher)


_waiting: list[Callable[[], None]] = []


@contextmanager
def on_first_compile(say: Callable[[], None]) -> Iterator[None]:
    """Call *say* before the ``with`` first compiles a kernel that is not stored yet."""
    _waiting[:] = [say]
    try:
        yield
    finally:
        _waiting.clear()


class _KernelLocator(_CacheLocator):  # type: ignore[misc]
    """Finds a function's folder by its module's name and digest."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._line = function.__code__.co_firstlineno
        digest = source_digest(function.__module__, file)
        self._path = cache_folder() / f"{function.__module__}-{digest[:16]}"

    def get_cache_path(self) -> str:
        return str(self._path)

    def get_source_stamp(self) -> str:
        return self._path.name

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> _KernelLocator | None:
        if not os.path.exists(file):
            return None
        locator = cls(function, file)
        try:
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator


class _KernelCacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_KernelLocator]  # noqa: RUF012  (numba's attribute)


class _KernelCache(Cache):  # type: ignore[misc]
    """Has files of its own for every signature, named by it and by the sources of its records.

    numba lists all signatures of a function in one file. A process could not read that where the
    file names a record class of another checkout, and two processes that compile at the same time
    could each take the other's machine code for theirs.
    """

    _impl_class = _KernelCacheImpl

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        self._cache_file = self._file_of(signature)
        # numba's own method also imports all that compiling needs, which takes 0.1 s. Stored code
        # only calls numba's functions in C, which have their names from here.
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            stored = self._load_overload(signature, target_context)
        if stored is None and _waiting:
            _waiting.pop()()
        return stored

    def save_overload(self, signature: Any, data: Any) -> None:
        self._cache_file = self._file_of(signature)
        super().save_overload(signature, data)

    def _file_of(self, signature: Any) -> IndexDataCacheFile:
        digest = hashlib.sha256(str(signature).encode())
        for module in sorted({cls.__module__ for cls in _record_classes(signature)}):
            digest.update(source_digest(module, _file(module)).encode())
        return IndexDataCacheFile(
            cache_path=self._cache_path,
            filename_base=f"{self._impl.filename_base}-{digest.hexdigest()[:16]}",
            source_stamp=self._impl.locator.get_source_stamp(),
        )


def _record_classes(signature: Any) -> Iterator[type]:
    """Yield the NamedTuple classes in a signature, at any depth."""
    for kind in signature:
        if isinstance(kind, types.BaseNamedTuple):
            yield kind.instance_class
        if isinstance(kind, types.BaseTuple):
            yield from _record_classes(kind)


def _file(module: str) -> str:
    return getattr(sys.modules[module], "__file__", None) or ""


@cache
def source_digest(module: str, file: str) -> str:
    """Return a digest of a module's source and of all that it imports from its own project.

    Its project is the folder beside its top-level package; where that is one of installed packages,
    the package alone. `joins` is part of every project.

    Parameters
    ----------
    module
        Its full name.
    file
        Its source file.
    """
    path = Path(file)
    root = path.parents[module.count(".") + (path.name == "__init__.py")]
    files = {
        source: source.relative_to(folder).as_posix() for source, folder in _closure(path, root)
    }
    digest = hashlib.sha256()
    for source, name in sorted(files.items(), key=lambda item: item[1]):
        digest.update(name.encode())
        digest.update(_read(source).encode())
    return digest.hexdigest()


def _closure(path: Path, root: Path) -> set[tuple[Path, Path]]:
    """Return *path* and the files that it imports, directly or not, each with its root folder."""
    seen, waiting = {(path, root)}, [(path, root)]
    while waiting:
        imported = _imported(*waiting.pop())
        waiting += [file for file in imported if file not in seen]
        seen.update(imported)
    return seen


@cache
def _imported(path: Path, root: Path) -> frozenset[tuple[Path, Path]]:
    """Return the files of its project that *path* imports, each with its root folder."""
    names = []
    for package, imported, plain in _IMPORT.findall(_read(path)):
        if package:
            # By dots: from the file's own package, or from one above it for each dot more.
            if dots := len(package) - len(package.lstrip(".")):
                folders = path.relative_to(root).parts[:-dots]
                package = ".".join([*folders, package.lstrip(".")]).rstrip(".")
            names += [package, *(f"{package}.{name}" for name in _NAME.findall(imported))]
        else:
            names += [part.split()[0] for part in plain.split(",") if part.strip()]
    own = path.relative_to(root).parts[0]
    found = set()
    for name in names:
        top = name.partition(".")[0]
        folder = _OURS if top == "joins" else root
        if top in ("joins", own) or root.name not in _INSTALLED:
            file = _source_of(name, folder)
            found |= {(file, folder)} if file else set()
    return frozenset(found)


@cache
def _source_of(name: str, root: Path) -> Path | None:
    """Return the file of the module *name* below *root*; None where it is another project's."""
    stem = root.joinpath(*name.split("."))
    for file in (stem.with_suffix(".py"), stem / "__init__.py"):
        if file.is_file():
            return file
    return None


@cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
