// Faults of the processor while a kernel runs, told as a GPU's.
#include <signal.h>
#include <ucontext.h>

#include "emulator.h"

namespace emulator {
namespace {

// A general protection fault tells no address. Moves of whole vectors raise it where they are not
// aligned; all others, where an address is beyond what the processor can spell.
bool moves_aligned_vector(const void *pc) {
  const unsigned char *code = static_cast<const unsigned char *>(pc);
  if (!code) return false;
  if (*code == 0xc5) {  // VEX of two bytes
    code += 2;
  } else if (*code == 0xc4) {  // of three
    code += 3;
  } else if (*code == 0x62) {  // EVEX
    code += 4;
  } else {
    while (*code == 0x66 || (*code & 0xf0) == 0x40) code++;
    if (*code++ != 0x0f) return false;
  }
  return *code == 0x28 || *code == 0x29 || *code == 0x6f || *code == 0x7f;
}

const int caught_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
struct sigaction previous[4];
stack_t previous_stack;
thread_local bool launching = false;

void on_signal(int number, siginfo_t *info, void *machine) {
  if (!launching || !has_running_thread()) {
    // Not ours: whoever handled it before this launch does.
    for (int i = 0; i < 4; i++) sigaction(caught_signals[i], &previous[i], nullptr);
    return;
  }
  const void *pc = nullptr;
  const char *did = "an access";
#if defined(__x86_64__)
  const mcontext_t &registers = static_cast<ucontext_t *>(machine)->uc_mcontext;
  pc = reinterpret_cast<const void *>(registers.gregs[REG_RIP]);
  did = registers.gregs[REG_ERR] & 2 ? "a store" : "a load";
#elif defined(__aarch64__)
  pc = reinterpret_cast<const void *>(static_cast<ucontext_t *>(machine)->uc_mcontext.pc);
#else
  (void)machine;
#endif
  const Running &now = running();
  const std::string line = source_line(*now.launch->function->module, pc);
  const Address address = reinterpret_cast<Address>(info->si_addr);
  if (number == SIGFPE) fail(launch_failed, line, "an integer division by zero");
  if (number == SIGILL) fail(launch_failed, line, "an instruction that does not exist");
  if (info->si_code == SI_KERNEL) {
    if (moves_aligned_vector(pc))
      fail(misaligned_address, line, "a vector access at an address that is not aligned to it");
    fail(illegal_address, line, "an access at an address that no memory can have");
  }
  if (is_private(address)) fail(launch_failed, line, "the thread's local memory is used up");
  // The page after dynamic shared memory has no access.
  const Address start = reinterpret_cast<Address>(now.dynamic_shared);
  const unsigned bytes = now.launch->dynamic_shared;
  if (address - start < ((bytes + 15) & ~15u) + 4096)
    fail(illegal_address, line,
         std::string(did) + " at offset " + std::to_string(address - start) +
             " of dynamic shared memory of " + std::to_string(bytes) + " bytes");
  fail(illegal_address, line, std::string(did) + " at " + describe_address(address));
}

}  // namespace

void catch_signals() {
  static char handler_stack[128 << 10];
  stack_t stack = {};
  stack.ss_sp = handler_stack;
  stack.ss_size = sizeof handler_stack;
  sigaltstack(&stack, &previous_stack);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  // SA_NODEFER: the handler is left by a switch of stacks, and the next fault must come through.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (int i = 0; i < 4; i++) sigaction(caught_signals[i], &action, &previous[i]);
  launching = true;
}

void release_signals() {
  launching = false;
  for (int i = 0; i < 4; i++) sigaction(caught_signals[i], &previous[i], nullptr);
  sigaltstack(&previous_stack, nullptr);
}

}  // namespace emulator
