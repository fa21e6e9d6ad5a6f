"""From one LLVM module to an object file for each level of processor."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm

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
