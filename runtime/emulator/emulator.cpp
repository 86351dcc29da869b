// All parts in one translation unit, which compiles in half the time that they take one by one.
#include "memory.cpp"
#include "modules.cpp"
#include "threads.cpp"
#include "signals.cpp"
#include "checks.cpp"
#include "compiler.cpp"
#include "driver.cpp"
