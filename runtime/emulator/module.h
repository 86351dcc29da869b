// What the shared object of compiled kernels and the emulator know of each other.
//
// Included on both sides: by the shim in front of every kernel source, and by the emulator. It
// includes nothing, so that a source sees no declaration that a GPU's compiler would not give.
#pragma once

struct uopc_index {
  unsigned x, y, z;
};

// What a kernel may ask about the thread that runs it.
struct uopc_thread {
  uopc_index thread, block, block_size, grid_size;
  void *dynamic_shared;
  unsigned linear;  // x fastest
  unsigned lane;
};

// Every operation that threads do together.
enum uopc_operation {
  UOPC_BARRIER,
  UOPC_BARRIER_OR,
  UOPC_BARRIER_AND,
  UOPC_BARRIER_COUNT,
  UOPC_SYNC_WARP,
  UOPC_SHUFFLE,
  UOPC_SHUFFLE_XOR,
  UOPC_SHUFFLE_DOWN,
  UOPC_SHUFFLE_UP,
  UOPC_BALLOT,
  UOPC_ALL,
  UOPC_ANY,
  UOPC_MATRIX_ADDRESS,  // all lanes must give the same address and stride
  UOPC_WARP_FUNCTION,   // a function over what each lane brings, run once
};

enum uopc_access { UOPC_READ, UOPC_WRITE, UOPC_ATOMIC };

// A place in the kernel source.
struct uopc_site {
  const char *file;
  int line;
};

// The emulator's services; the loader fills the table in.
struct uopc_host {
  unsigned long long (*collective)(uopc_operation operation, unsigned mask,
                                   unsigned long long value, int argument, int width,
                                   uopc_site site);
  void (*warp_function)(void (*run)(void **lanes), void *lane, uopc_site site);
  void (*access)(const void *address, unsigned size, uopc_access kind, const void *pc);
  void (*copy_async)(void *to, const void *from, unsigned size, unsigned valid, uopc_site site);
  void (*copy_commit)();
  void (*copy_wait)(unsigned groups_left);
  void (*trap)(const char *reason, uopc_site site);
};

struct uopc_kernel {
  const char *name;
  void (*run)(void **parameters);
  const unsigned *parameter_sizes;
  unsigned parameter_count;
};

// The one symbol by which the loader finds all else.
struct uopc_module_table {
  unsigned version;
  unsigned checked;  // compiled with the access hooks
  uopc_host *host;
  uopc_thread **current;
  const uopc_kernel *kernels;  // up to one without a name
};

#define UOPC_MODULE_VERSION 1u
