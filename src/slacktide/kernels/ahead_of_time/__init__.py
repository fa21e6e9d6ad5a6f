"""Makes the library of compiled kernels that a wheel has: ``python -m slacktide.kernels.ahead_of_time --out FOLDER``.

Numba types and lowers each kernel once. All of it becomes one LLVM module, of which only entries and functions called
by address can be seen from outside. LLVM optimises and translates it for each level of processor (:mod:`.lowering`),
and a linker makes the libraries (:mod:`.building`). Nothing of this is imported where a library is used.
"""
