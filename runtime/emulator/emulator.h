// The parts of the emulator, as they see each other. All state belongs to one device; the driver's
// entries hold a lock, so nothing here does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "module.h"

namespace emulator {

typedef uint64_t Address;

// The numbers of CUresult that the emulator gives.
enum Result : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  no_device = 100,
  invalid_device = 101,
  invalid_image = 200,
  invalid_context = 201,
  no_binary_for_gpu = 209,
  invalid_handle = 400,
  not_found = 500,
  illegal_address = 700,
  misaligned_address = 716,
  launch_failed = 719,
  capture_unsupported = 900,
};

constexpr unsigned most_threads = 1024;
constexpr unsigned static_shared_limit = 48 << 10;
constexpr unsigned shared_limit = 227 << 10;

// -- compiled kernels (modules.cpp) ---------------------------------------------------------------

struct Variable {
  std::string name;
  std::string kernel;  // whose shared variable it is; empty: of a device function or the file
  Address start;
  size_t size;
};

struct Module {
  void *handle = nullptr;
  int descriptor = -1;  // of the file in memory; glibc finds libraries by name, so it stays open
  const uopc_module_table *table = nullptr;
  Address bias = 0;  // where the image begins
  Address end = 0;
  std::vector<Variable> shared;  // by address
  std::map<std::string, Variable> globals;
  ~Module();
};

struct Function {
  Module *module;
  const uopc_kernel *kernel;
  std::vector<Variable> shared;
  size_t static_shared = 0;
  unsigned dynamic_limit = static_shared_limit;
};

// Null, with the result and why, if the image is none of ours.
std::unique_ptr<Module> load_module(const void *image, Result &result, std::string &why);
std::unique_ptr<Function> find_function(Module &module, const std::string &name);
// The bytes of shared variables of each kernel, read off an image that is not loaded.
std::map<std::string, size_t> shared_sizes(const std::string &image);
// `k.cu:12` for an address in the module's code, as its debug information has it, or empty.
std::string source_line(const Module &module, const void *pc);

// -- device memory (memory.cpp) -------------------------------------------------------------------

struct Cell;

struct Allocation {
  Address start;
  size_t size;
  char *mapping;
  size_t mapping_size;
  std::unique_ptr<Cell[]> cells;  // of checked launches
};

Result allocate(size_t size, Address &start);
bool release(Address start);
void release_all();
size_t allocated_bytes();
size_t total_bytes();
// The allocation that holds all of [start, start + size), or null.
Allocation *find_allocation(Address start, size_t size);
// "offset 400 of an allocation of 400 bytes", or that none is near.
std::string describe_address(Address address);

// -- running kernels (threads.cpp) ----------------------------------------------------------------

struct Launch {
  const Function *function;
  uopc_index grid, block;
  unsigned dynamic_shared;
  void **parameters;
};

struct Fault {
  Result result = success;
  std::string message;
};

// Runs every block to the end or to the first fault.
Fault run(const Launch &launch);

// For the thread that runs: what the checks ask.
struct Running {
  const Launch *launch;
  char *dynamic_shared;
  unsigned linear, warp;
  uopc_index block;
  unsigned block_serial;   // counts blocks over all launches
  unsigned first_serial;   // of this launch
  unsigned barrier_epoch;  // barriers that the block has passed
  unsigned warp_epoch;     // __syncwarp that the thread has passed
};
bool has_running_thread();
const Running &running();
// Whether an address belongs to one thread alone, so that nothing about it need be checked.
bool is_private(Address address);
// Ends the launch with a message that names kernel, block and thread; does not return.
[[noreturn]] void fail(Result result, const std::string &line, const std::string &what);
std::string place(uopc_index index);
std::string place(uopc_site site);
uopc_index thread_index(unsigned linear);

// -- faults of the processor (signals.cpp) --------------------------------------------------------

// Around a launch: faults of this host thread become failures of the kernel's thread that runs.
void catch_signals();
void release_signals();

// -- checks (checks.cpp) --------------------------------------------------------------------------

void check_access(const void *address, unsigned size_and_flag, uopc_access kind, const void *pc);
void checks_begin_launch(const Launch &launch);

// -- processes (compiler.cpp) ---------------------------------------------------------------------

// Runs a program found on PATH, without a shell; its output goes to `output`. -1: did not run.
int run_program(const std::vector<std::string> &words, std::string &output, int kept_descriptor = -1);

}  // namespace emulator
