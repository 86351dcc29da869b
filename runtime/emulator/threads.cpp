// A block's threads as fibers, and all that threads do together.
//
// One fiber runs until it waits or returns. Whoever comes last to a collective computes it for all
// who take part and makes them ready; so a collective that some never reach is left over when no
// fiber can run, and its site is known.
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "emulator.h"

namespace emulator {
namespace {

// -- switching between fibers ---------------------------------------------------------------------

constexpr size_t stack_size = 128 << 10;
constexpr size_t guard_size = 4 << 10;

#if defined(__x86_64__) && !defined(UOPC_UCONTEXT)
struct Context {
  void *stack_pointer;
};
// The callee-saved registers go to the stack that is left and come from the one that is entered:
// about 10 ns, where swapcontext, with two system calls, takes 240.
asm(R"(
.text
.hidden uopc_switch
.globl uopc_switch
.type uopc_switch, @function
uopc_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size uopc_switch, . - uopc_switch
)");
extern "C" void uopc_switch(void **save, void *to);

inline void switch_context(Context &from, Context &to) {
  uopc_switch(&from.stack_pointer, to.stack_pointer);
}

void prepare(Context &context, char *, char *top, void (*entry)()) {
  void **word = reinterpret_cast<void **>(top);
  *--word = nullptr;  // the return address of `entry`, which never returns
  *--word = reinterpret_cast<void *>(entry);
  for (int saved = 0; saved < 6; saved++) *--word = nullptr;
  context.stack_pointer = word;
}
#else
struct Context {
  ucontext_t state;
};

inline void switch_context(Context &from, Context &to) { swapcontext(&from.state, &to.state); }

void prepare(Context &context, char *bottom, char *top, void (*entry)()) {
  getcontext(&context.state);
  context.state.uc_stack.ss_sp = bottom;
  context.state.uc_stack.ss_size = top - bottom;
  context.state.uc_link = nullptr;
  makecontext(&context.state, entry, 0);
}
#endif

struct Fiber {
  Context context;
  char *bottom, *top;
};

// -- the state of a launch ------------------------------------------------------------------------

struct Copy {
  void *to;
  const void *from;
  unsigned size, valid, group;
};

struct Thread {
  uopc_thread seen;
  enum { absent, ready, waiting, returned } state;
  Fiber *fiber;
  unsigned warp, warp_epoch;
  // What it waits for:
  uopc_operation operation;
  unsigned mask;
  unsigned long long value, result;
  int argument, width;
  uopc_site site;
  // Asynchronous copies under way:
  std::vector<Copy> copies;
  unsigned copy_group;
};

Thread threads[most_threads];
Fiber fibers[most_threads];
std::vector<Fiber *> idle_fibers;
char *stacks;
char *dynamic_area;  // ends at a guard page

Context outside;  // of run_block
Thread *current;
Thread *ready_queue[most_threads];
unsigned ready_head, ready_count;
unsigned thread_count, next_thread, returned_count, arrived_count;
unsigned serial;

const Launch *launch;
Running now;
Fault fault;
void (*warp_function)(void **lanes);

void fiber_main();

void map_memory() {
  if (stacks) return;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  stacks = static_cast<char *>(
      mmap(nullptr, stack_size * most_threads, PROT_READ | PROT_WRITE, flags, -1, 0));
  for (unsigned i = 0; i < most_threads; i++) {
    char *bottom = stacks + i * stack_size;
    mprotect(bottom, guard_size, PROT_NONE);
    fibers[i].bottom = bottom + guard_size;
    // Tops at equal distances would all fall into one set of the cache.
    fibers[i].top = bottom + stack_size - 64 - (i % 29) * 128;
  }
  const size_t size = (shared_limit + 4095) & ~size_t(4095);
  char *area = static_cast<char *>(
      mmap(nullptr, size + 2 * guard_size, PROT_READ | PROT_WRITE, flags, -1, 0));
  mprotect(area, guard_size, PROT_NONE);
  mprotect(area + guard_size + size, guard_size, PROT_NONE);
  dynamic_area = area + guard_size + size;
}

// -- scheduling -----------------------------------------------------------------------------------

void make_current(Thread *thread) {
  current = thread;
  *launch->function->module->table->current = &thread->seen;
}

Thread *begin_thread(Fiber *fiber) {
  const unsigned linear = next_thread++;
  Thread &thread = threads[linear];
  thread.seen.thread = thread_index(linear);
  thread.seen.block = now.block;
  thread.seen.block_size = launch->block;
  thread.seen.grid_size = launch->grid;
  thread.seen.dynamic_shared = now.dynamic_shared;
  thread.seen.linear = linear;
  thread.seen.lane = linear % 32;
  thread.warp = linear / 32;
  thread.warp_epoch = 0;
  thread.state = Thread::ready;
  thread.fiber = fiber;
  thread.copies.clear();
  thread.copy_group = 0;
  return &thread;
}

void make_ready(Thread *thread) {
  thread->state = Thread::ready;
  ready_queue[(ready_head + ready_count++) % most_threads] = thread;
}

// A thread that can run, begun if need be; null when all that are left wait.
Thread *choose() {
  if (ready_count) {
    Thread *thread = ready_queue[ready_head];
    ready_head = (ready_head + 1) % most_threads;
    ready_count--;
    return thread;
  }
  if (next_thread == thread_count) return nullptr;
  Fiber *fiber = idle_fibers.back();
  idle_fibers.pop_back();
  prepare(fiber->context, fiber->bottom, fiber->top, fiber_main);
  return begin_thread(fiber);
}

// Leaves `from` for the next thread, or for run_block.
void switch_from(Context &from) {
  Thread *next = choose();
  if (next) make_current(next);
  switch_context(from, next ? next->fiber->context : outside);
}

void fiber_main() {
  for (;;) {
    launch->function->kernel->run(launch->parameters);
    Thread *thread = current;
    thread->state = Thread::returned;
    returned_count++;
    if (ready_count == 0 && next_thread < thread_count) {
      // Threads that never wait need one fiber in all.
      make_current(begin_thread(thread->fiber));
      continue;
    }
    idle_fibers.push_back(thread->fiber);
    switch_from(thread->fiber->context);
  }
}

unsigned long long wait(Thread &thread) {
  thread.state = Thread::waiting;
  switch_from(thread.fiber->context);
  return thread.result;
}

// -- collectives ----------------------------------------------------------------------------------

const char *spelled(uopc_operation operation) {
  static const char *const names[] = {
      "__syncthreads",   "__syncthreads_or", "__syncthreads_and", "__syncthreads_count",
      "__syncwarp",      "__shfl_sync",      "__shfl_xor_sync",   "__shfl_down_sync",
      "__shfl_up_sync",  "__ballot_sync",    "__all_sync",        "__any_sync",
      "a matrix access", "mma_sync",
  };
  return names[operation];
}

bool is_barrier(uopc_operation operation) { return operation <= UOPC_BARRIER_COUNT; }

bool same_site(const Thread &one, const Thread &other) {
  return one.operation == other.operation && one.site.line == other.site.line &&
         strcmp(one.site.file, other.site.file) == 0;
}

std::string doing(const Thread &thread) {
  return "thread " + place(thread.seen.thread) + " is in " + spelled(thread.operation) + " at " +
         place(thread.site);
}

unsigned long long meet_block(Thread &last) {
  if (++arrived_count < thread_count) return wait(last);
  unsigned long long any = 0, all = 1, count = 0;
  for (unsigned i = 0; i < thread_count; i++) {
    const Thread &thread = threads[i];
    if (!same_site(thread, last))
      fail(launch_failed, place(last.site),
           "threads of one block stand at two barriers: " + doing(thread) + ", " + doing(last));
    any |= thread.value;
    all &= thread.value;
    count += thread.value;
  }
  arrived_count = 0;
  now.barrier_epoch++;
  const unsigned long long result = last.operation == UOPC_BARRIER_OR    ? any
                                    : last.operation == UOPC_BARRIER_AND ? all
                                                                         : count;
  for (unsigned i = 0; i < thread_count; i++) {
    threads[i].result = result;
    if (&threads[i] != &last) make_ready(&threads[i]);
  }
  return result;
}

// The lane that a lane's shuffle reads; its own where the computed one is outside its group.
unsigned shuffle_source(const Thread &thread) {
  const int lane = int(thread.seen.lane), width = thread.width;
  const int first = lane & ~(width - 1), by = thread.argument;
  switch (thread.operation) {
    case UOPC_SHUFFLE: return unsigned(first + (by & (width - 1)));
    case UOPC_SHUFFLE_XOR: return unsigned((lane ^ by) >= first + width ? lane : lane ^ by);
    case UOPC_SHUFFLE_DOWN: return unsigned(by >= first + width - lane ? lane : lane + by);
    default: return unsigned(by > lane - first ? lane : lane - by);
  }
}

void check_partners(const Thread &last, Thread *const *lanes, unsigned mask) {
  for (unsigned lane = 0; lane < 32; lane++) {
    if (!(mask >> lane & 1)) continue;
    const Thread &thread = *lanes[lane];
    if (!same_site(thread, last))
      fail(launch_failed, place(last.site),
           "lanes of one warp stand at two operations: " + doing(thread) + ", " + doing(last));
    if (thread.mask != last.mask)
      fail(launch_failed, place(last.site),
           "lanes of one warp give two masks: " + doing(thread) + ", " + doing(last));
    if (last.operation == UOPC_MATRIX_ADDRESS &&
        (thread.value != last.value || thread.argument != last.argument))
      fail(launch_failed, place(last.site),
           "lanes of one warp give two addresses or strides to a matrix access");
    if (last.operation >= UOPC_SHUFFLE && last.operation <= UOPC_SHUFFLE_UP) {
      const int width = thread.width;
      if (width < 1 || width > 32 || (width & (width - 1)))
        fail(launch_failed, place(last.site),
             "a shuffle's width is " + std::to_string(width) + "; it may be 1, 2, 4, 8, 16 or 32");
      const unsigned source = shuffle_source(thread);
      if (source > 31 || !(mask >> source & 1))
        fail(launch_failed, place(last.site),
             "thread " + place(thread.seen.thread) + " reads from lane " + std::to_string(source) +
                 ", which takes no part in the shuffle");
    }
  }
}

unsigned long long meet_warp(Thread &last) {
  const unsigned first = last.warp * 32;
  const unsigned lane_count = std::min(thread_count - first, 32u);
  const unsigned existing = lane_count == 32 ? ~0u : (1u << lane_count) - 1;
  const unsigned mask = last.mask & existing;
  if (!(mask >> last.seen.lane & 1))
    fail(launch_failed, place(last.site),
         std::string("the lane is not in the mask that it gives to ") + spelled(last.operation));
  Thread *lanes[32];
  for (unsigned lane = 0; lane < 32; lane++) {
    if (!(mask >> lane & 1)) continue;
    Thread &thread = *(lanes[lane] = &threads[first + lane]);
    if (&thread == &last) continue;
    if (thread.state != Thread::waiting || is_barrier(thread.operation)) return wait(last);
  }
  check_partners(last, lanes, mask);
  if (last.operation >= UOPC_MATRIX_ADDRESS && mask != ~0u)
    fail(launch_failed, place(last.site), "a matrix operation needs all 32 lanes of a warp");
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; lane++)
    if (mask >> lane & 1) votes |= unsigned(lanes[lane]->value & 1) << lane;
  if (last.operation == UOPC_WARP_FUNCTION) {
    void *shares[32];
    for (unsigned lane = 0; lane < 32; lane++)
      shares[lane] = reinterpret_cast<void *>(lanes[lane]->value);
    warp_function(shares);
  }
  for (unsigned lane = 0; lane < 32; lane++) {
    if (!(mask >> lane & 1)) continue;
    Thread &thread = *lanes[lane];
    switch (last.operation) {
      case UOPC_SYNC_WARP: thread.warp_epoch++; break;
      case UOPC_BALLOT: thread.result = votes; break;
      case UOPC_ALL: thread.result = votes == mask; break;
      case UOPC_ANY: thread.result = votes != 0; break;
      case UOPC_MATRIX_ADDRESS:
      case UOPC_WARP_FUNCTION: break;
      default: thread.result = lanes[shuffle_source(thread)]->value;
    }
  }
  for (unsigned lane = 0; lane < 32; lane++)
    if ((mask >> lane & 1) && lanes[lane] != &last) make_ready(lanes[lane]);
  return last.result;
}

unsigned long long collective(uopc_operation operation, unsigned mask, unsigned long long value,
                              int argument, int width, uopc_site site) {
  Thread &thread = *current;
  thread.operation = operation;
  thread.mask = mask;
  thread.value = value;
  thread.argument = argument;
  thread.width = width;
  thread.site = site;
  return is_barrier(operation) ? meet_block(thread) : meet_warp(thread);
}

void run_warp_function(void (*function)(void **), void *share, uopc_site site) {
  warp_function = function;
  collective(UOPC_WARP_FUNCTION, ~0u, reinterpret_cast<unsigned long long>(share), 0, 0, site);
}

// -- asynchronous copies: poison now, the data at the wait, so that a missing wait shows -----------

void copy_async(void *to, const void *from, unsigned size, unsigned valid, uopc_site site) {
  const Address both = reinterpret_cast<Address>(to) | reinterpret_cast<Address>(from);
  if ((size != 4 && size != 8 && size != 16) || valid > size)
    fail(launch_failed, place(site), "an asynchronous copy of " + std::to_string(size) +
                                         " bytes; it may be 4, 8 or 16");
  if (both % size)
    fail(misaligned_address, place(site),
         "an asynchronous copy of " + std::to_string(size) + " bytes that is not aligned to it");
  if (valid && !find_allocation(reinterpret_cast<Address>(from), valid))
    fail(illegal_address, place(site), "an asynchronous copy reads at " +
                                           describe_address(reinterpret_cast<Address>(from)));
  memset(to, 0xff, size);
  current->copies.push_back({to, from, size, valid, current->copy_group});
}

void copy_commit() { current->copy_group++; }

void copy_wait(unsigned groups_left) {
  std::vector<Copy> &copies = current->copies;
  size_t kept = 0;
  for (const Copy &copy : copies) {
    if (copy.group + groups_left >= current->copy_group) {
      copies[kept++] = copy;
      continue;
    }
    if (launch->function->module->table->checked)
      check_access(copy.to, copy.size, UOPC_WRITE, __builtin_return_address(0));
    memcpy(copy.to, copy.from, copy.valid);
    memset(static_cast<char *>(copy.to) + copy.valid, 0, copy.size - copy.valid);
  }
  copies.resize(kept);
}

void trap(const char *reason, uopc_site site) { fail(launch_failed, place(site), reason); }

// -- blocks ---------------------------------------------------------------------------------------

// That threads wait for others which have returned or wait elsewhere: one part a place of waiting.
std::string who_waits() {
  std::string parts;
  for (unsigned i = 0; i < thread_count; i++) {
    const Thread &first = threads[i];
    if (first.state != Thread::waiting) continue;
    unsigned count = 0;
    bool told = false;
    for (unsigned j = 0; j < thread_count; j++) {
      if (threads[j].state != Thread::waiting || !same_site(threads[j], first)) continue;
      told = told || j < i;
      count++;
    }
    if (told) continue;
    parts += std::to_string(count) + " of " + std::to_string(thread_count) +
             " threads wait in " + spelled(first.operation) + " at " + place(first.site) +
             ", thread " + place(first.seen.thread) + " first; ";
  }
  return parts + std::to_string(returned_count) + " have returned";
}

std::string in_block(const std::string &thread, const std::string &line, const std::string &what) {
  return "kernel " + std::string(launch->function->kernel->name) + ", block " + place(now.block) +
         thread + (line.empty() ? "" : ", " + line) + ": " + what;
}

void poison_shared_memory() {
  // All ones: a NaN of every float type, so that a value nobody wrote shows.
  for (const Variable &variable : launch->function->shared)
    memset(reinterpret_cast<void *>(variable.start), 0xff, variable.size);
  if (launch->dynamic_shared) memset(now.dynamic_shared, 0xff, launch->dynamic_shared);
}

void run_block() {
  poison_shared_memory();
  idle_fibers.clear();
  for (unsigned i = thread_count; i-- > 0;) idle_fibers.push_back(&fibers[i]);
  for (unsigned i = 0; i < thread_count; i++) threads[i].state = Thread::absent;
  ready_head = ready_count = next_thread = returned_count = arrived_count = 0;
  now.block_serial = ++serial;
  now.barrier_epoch = 0;
  switch_from(outside);
  if (fault.result == success && returned_count < thread_count) {
    for (unsigned i = 0; i < thread_count; i++)
      if (threads[i].state == Thread::waiting) {
        const char *what = is_barrier(threads[i].operation)
                               ? "a barrier that not all threads reach: "
                               : "a warp operation that not all its lanes reach: ";
        fault = {launch_failed, in_block("", place(threads[i].site), what + who_waits())};
        break;
      }
  }
  current = nullptr;
}

}  // namespace

// -- what the other parts see ---------------------------------------------------------------------

bool has_running_thread() { return current != nullptr; }

const Running &running() {
  now.linear = current->seen.linear;
  now.warp = current->warp;
  now.warp_epoch = current->warp_epoch;
  return now;
}

bool is_private(Address address) {
  // The stacks, and what threadIdx and its kin read.
  return address - reinterpret_cast<Address>(stacks) < stack_size * most_threads ||
         address - reinterpret_cast<Address>(threads) < sizeof threads;
}

uopc_index thread_index(unsigned linear) {
  const uopc_index &size = launch->block;
  return {linear % size.x, linear / size.x % size.y, linear / size.x / size.y};
}

std::string place(uopc_index index) {
  return "(" + std::to_string(index.x) + "," + std::to_string(index.y) + "," +
         std::to_string(index.z) + ")";
}

std::string place(uopc_site site) { return std::string(site.file) + ":" + std::to_string(site.line); }

void fail(Result result, const std::string &line, const std::string &what) {
  fault = {result, in_block(", thread " + place(current->seen.thread), line, what)};
  static Context abandoned;
  switch_context(abandoned, outside);
  __builtin_unreachable();
}

Fault run(const Launch &asked) {
  map_memory();
  launch = &asked;
  fault = {};
  thread_count = asked.block.x * asked.block.y * asked.block.z;
  now = {};
  now.launch = &asked;
  now.first_serial = serial + 1;
  // The end of dynamic shared memory is the guard page; its start is aligned as a GPU's.
  now.dynamic_shared = dynamic_area - ((asked.dynamic_shared + 15) & ~15u);
  *asked.function->module->table->host = {collective, run_warp_function, check_access, copy_async,
                                          copy_commit, copy_wait, trap};
  if (asked.function->module->table->checked) checks_begin_launch(asked);
  catch_signals();
  for (unsigned z = 0; z < asked.grid.z; z++)
    for (unsigned y = 0; y < asked.grid.y; y++)
      for (unsigned x = 0; x < asked.grid.x && fault.result == success; x++) {
        now.block = {x, y, z};
        run_block();
      }
  release_signals();
  return fault;
}

}  // namespace emulator
