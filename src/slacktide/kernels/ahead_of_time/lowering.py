"""From kernels to one LLVM module, and from that to an object file for each level of processor.

Each kernel is typed and lowered once, in Numba's usual way, and linked as it is. What Python calls gets a C function
around it, as :func:`slacktide.kernels.runtime.library.caller` calls it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import runtime, types
from numba.np import arrayobj
from numba.np.numpy_support import from_dtype

from slacktide import kernels
from slacktide.errors import KernelError
from slacktide.kernels.runtime import jit
from slacktide.kernels.runtime.code_parts import module_of, with_all
from slacktide.kernels.runtime.compiling import ADDRESSED, ENTRIES
from slacktide.kernels.runtime.intrinsics import WHOLE, array_value
from slacktide.kernels.runtime.library import symbol
from slacktide.kernels.runtime.linking import pipeline
from slacktide.kernels.runtime.signatures import Signature, Value, signature_of

STATUS = ir.IntType(32)
MEMORY = Path(__file__).with_name("memory.ll")
"""In place of Numba's runtime library."""


def import_all() -> None:
    """Import every kernel, so that it is registered."""
    for module in pkgutil.walk_packages(kernels.__path__, "slacktide.kernels."):
        if not module.name.startswith("slacktide.kernels.ahead_of_time"):
            importlib.import_module(module.name)


def lowered() -> bytes:
    """The bitcode of all kernels, not yet optimised; what is called from outside can be seen from there."""
    if pipeline() is None:
        raise KernelError(f"{jit.COMPILER} is not one that slacktide.kernels.runtime.code_parts was written for")
    import_all()
    with _counted_from_the_front():
        return _lowered()


def _lowered() -> bytes:
    wrappers, libraries, names = [], [], []
    for one in ENTRIES:
        signature = signature_of(one.py_func)
        wrapper, library = _entry(one, signature)
        wrappers.append(wrapper)
        libraries.append(library)
        names.append(symbol(one.py_func))
    for function in ADDRESSED:
        count = function.py_func.__code__.co_argcount
        wrapper, library = _called_by_address(jit.part(function.py_func), function.py_func, count)
        wrappers.append(wrapper)
        libraries.append(library)
        names.append(symbol(function.py_func))
    module = _linked(wrappers, libraries)
    _hide_all_but(names, module)
    return bytes(module.as_bitcode())


@contextmanager
def _counted_from_the_front() -> Iterator[None]:
    """An index below 0, by which Python counts from the end, is not looked for: no kernel has one.

    Views see to that where kernels run as plain Python (:mod:`slacktide.kernels.tables.views`).
    """
    usual: Any = arrayobj
    before = usual.fix_integer_index
    usual.fix_integer_index = lambda context, builder, type_, index, _: context.cast(builder, index, type_, types.intp)
    try:
        yield
    finally:
        usual.fix_integer_index = before


def _hide_all_but(names: Collection[str], module: Any) -> None:
    """So that LLVM need not keep what these functions have inside."""
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "external" if function.name in names else "internal"
    for variable in module.global_variables:
        if not variable.is_declaration and variable.linkage != llvm.Linkage.private:
            variable.linkage = "internal"


def _linked(wrappers: Sequence[str], libraries: Sequence[Any]) -> Any:
    whole = llvm.parse_assembly("")
    for text in wrappers:
        whole.link_in(llvm.parse_assembly(text))
    usual = cast(Any, runtime)
    for library in with_all(list(libraries)):
        if library is not usual.rtsys.library:
            whole.link_in(module_of(library), preserve=True)
    whole.link_in(llvm.parse_assembly(MEMORY.read_text()))
    return whole


def _type(value: Value) -> Any:
    element = from_dtype(value.dtype)
    return types.Array(element, value.axes, "C") if value.axes else element


def _compiled(dispatcher: Any, arguments: Sequence[Any]) -> Any:
    """What Numba made of a function for arguments of these types."""
    given = tuple(arguments)
    dispatcher.compile(given)
    return dispatcher.overloads[given]


def _entry(dispatcher: Any, signature: Signature) -> tuple[str, Any]:
    """A C function around an entry: its LLVM assembly, and the code library of what it calls."""
    made = _compiled(dispatcher, [_type(one) for one in signature.arguments])
    context, described = made.target_context, made.fndesc
    given: list[Any] = []
    for one in signature.arguments:
        given += [WHOLE] * (1 + one.axes) if one.axes else [_c_type(one.dtype)]
    if signature.returns:
        given.append(WHOLE)
    module, function, builder = _function(context, symbol(dispatcher.py_func), STATUS, given)
    words, arguments = list(function.args), []
    for one, type_ in zip(signature.arguments, described.argtypes, strict=True):
        first = words.pop(0)
        if one.axes:
            extents = [words.pop(0) for _ in range(one.axes)]
            arguments.append(array_value(context, builder, type_, first, extents))
        else:
            arguments.append(_from_c(builder, one, first))
    status, out = _call(context, builder, described, arguments)
    if signature.returns:
        _store(context, builder, described.restype, out, signature, words.pop(0), function.name)
    builder.ret(status.code)
    return str(module), made.library


def _function(context: Any, name: str, returned: Any, given: Sequence[Any]) -> tuple[Any, Any, Any]:
    module = context.create_module(name)
    function = ir.Function(module, ir.FunctionType(returned, given), name)
    return module, function, ir.IRBuilder(function.append_basic_block("entry"))


def _call(context: Any, builder: Any, described: Any, arguments: Sequence[Any]) -> tuple[Any, Any]:
    """Call what Numba compiled: its status, and what it returned."""
    types_ = described.restype, described.argtypes
    callee = ir.Function(builder.module, context.call_conv.get_function_type(*types_), described.llvm_func_name)
    found: tuple[Any, Any] = context.call_conv.call_function(builder, callee, *types_, arguments)
    return found


def _c_type(dtype: np.dtype[Any]) -> Any:
    return {"i": ir.IntType(64), "f": ir.DoubleType(), "b": ir.IntType(8)}[dtype.kind]


def _from_c(builder: Any, value: Value, given: Any) -> Any:
    return builder.trunc(given, ir.IntType(1)) if value.dtype.kind == "b" else given


def _store(context: Any, builder: Any, returned: Any, out: Any, signature: Signature, place: Any, name: str) -> None:
    """What was returned, as the annotation says, into 8 bytes for each number."""
    several = [(returned, out)]
    if len(signature.returns) > 1:
        several = [(type_, builder.extract_value(out, k)) for k, type_ in enumerate(returned)]
    for k, ((type_, value), wanted) in enumerate(zip(several, signature.returns, strict=True)):
        if type_ != from_dtype(wanted):
            raise TypeError(f"{name}: found {type_}, expected {wanted} as its annotation says")
        number = builder.zext(value, WHOLE) if wanted.kind == "b" else value
        at = builder.add(place, WHOLE(8 * k))
        builder.store(number, builder.inttoptr(at, number.type.as_pointer()))


def _called_by_address(dispatcher: Any, function: Any, count: int) -> tuple[str, Any]:
    """A C function of whole numbers that returns one; -1 where it found no memory for what it makes for a moment."""
    made = _compiled(dispatcher, [types.int64] * count)
    context, described = made.target_context, made.fndesc
    module, outer, builder = _function(context, symbol(function), WHOLE, [WHOLE] * count)
    status, out = _call(context, builder, described, list(outer.args))
    if described.restype != types.int64:
        raise TypeError(f"{symbol(function)}: found {described.restype}, expected a whole number")
    builder.ret(builder.select(status.is_error, WHOLE(-1), out))
    return str(module), made.library


GENERIC = {"aarch64": "generic"}
"""Names that LLVM has for levels of ours where they are not the same."""


def optimised(bitcode: bytes, machine: str, level: str) -> tuple[Any, Any]:
    """The module as LLVM would have it for a level, and what translates it.

    Operations stay as they are written: none is reordered, multiplications and additions are not fused, so that
    results are the same to the bit on every level.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_bitcode(bitcode)
    module.triple = f"{machine}-unknown-linux-gnu"
    target = llvm.Target.from_triple(module.triple)
    options = {"cpu": GENERIC.get(level, level), "features": "", "opt": 3, "reloc": "pic", "codemodel": "default"}
    translator = target.create_target_machine(**options)
    module.data_layout = str(translator.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.slp_vectorization = True
    builder = llvm.create_pass_builder(translator, tuning)
    builder.getModulePassManager().run(module, builder)
    module.verify()
    return module, translator


def translated(bitcode: bytes, machine: str, level: str) -> bytes:
    """The object file for a level."""
    module, translator = optimised(bitcode, machine, level)
    return bytes(translator.emit_object(module))
