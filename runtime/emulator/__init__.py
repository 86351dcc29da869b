"""A GPU that is not there: the CUDA driver and NVRTC as one library for the host.

The C++ files here are its source. `build.py` compiles them on first use.

    module.h             what compiled kernels and the emulator know of each other
    uopc_emulator*.h     the shim: CUDA C++ as a host compiler can read it
    compiler.cpp         NVRTC's calls: rewrite the source a little, run the host's compiler
    emulator.cpp         all of these as one translation unit
    driver.cpp           the driver's calls
    modules.cpp          loading, symbols, source lines
    memory.cpp           device memory between guard pages
    threads.cpp          threads as fibers; barriers, shuffles, votes
    signals.cpp          faults of the processor, told as a GPU's
    checks.cpp           bounds, races, reads of what nobody wrote
"""
