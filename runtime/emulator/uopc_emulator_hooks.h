// How the emulator calls a kernel, and how checked code tells the emulator of its accesses.
#pragma once

template <int...> struct uopc_positions {};
#if defined(__clang__)
template <class, int... I> using uopc_positions_of = uopc_positions<I...>;
template <int N> using uopc_first = __make_integer_seq<uopc_positions_of, int, N>;
#else
template <int N> using uopc_first = uopc_positions<__integer_pack(N)...>;
#endif

// Of this file alone: symbols that the linker makes unique would keep the library from unloading,
// and the loader would find it again under the next one's name.
namespace {
template <auto kernel> struct uopc_thunk;
template <class... A, void (*kernel)(A...)> struct uopc_thunk<kernel> {
  static constexpr unsigned count = sizeof...(A);
  static constexpr unsigned sizes[] = {(unsigned)sizeof(A)..., 0};
  template <int... I>
  UOPC_UNCHECKED static void call(void **parameters, uopc_positions<I...>) {
    kernel(*(A *)parameters[I]...);
  }
  UOPC_UNCHECKED static void run(void **parameters) { call(parameters, uopc_first<count>{}); }
};
}  // namespace

#define UOPC_KERNEL(name) {#name, uopc_thunk<&name>::run, uopc_thunk<&name>::sizes, \
                           uopc_thunk<&name>::count},

#ifdef UOPC_CHECKED
// The compiler calls these before every access under -fsanitize=thread; its own library is not
// linked. An access through a type that asks for alignment is known by its name.
#define UOPC_HOOK(name, size, kind)                                                               \
  extern "C" UOPC_HIDDEN UOPC_UNCHECKED void name(void *address) {                                \
    uopc_shared_host.access(address, size, kind, __builtin_return_address(0));                    \
  }
#define UOPC_UNALIGNED 0x100  // added to the size
#define UOPC_HOOKS(size)                                                                          \
  UOPC_HOOK(__tsan_read##size, size, UOPC_READ)                                                   \
  UOPC_HOOK(__tsan_write##size, size, UOPC_WRITE)                                                 \
  UOPC_HOOK(__tsan_unaligned_read##size, size | UOPC_UNALIGNED, UOPC_READ)                        \
  UOPC_HOOK(__tsan_unaligned_write##size, size | UOPC_UNALIGNED, UOPC_WRITE)
UOPC_HOOKS(1) UOPC_HOOKS(2) UOPC_HOOKS(4) UOPC_HOOKS(8) UOPC_HOOKS(16)
#define UOPC_RANGE_HOOK(name, kind)                                                               \
  extern "C" UOPC_HIDDEN UOPC_UNCHECKED void name(void *address, size_t size) {                   \
    for (size_t done = 0; done < size; done++)                                                    \
      uopc_shared_host.access((char *)address + done, 1, kind, __builtin_return_address(0));      \
  }
UOPC_RANGE_HOOK(__tsan_read_range, UOPC_READ)
UOPC_RANGE_HOOK(__tsan_write_range, UOPC_WRITE)
extern "C" UOPC_HIDDEN UOPC_UNCHECKED void __tsan_func_entry(void *) {}
extern "C" UOPC_HIDDEN UOPC_UNCHECKED void __tsan_func_exit() {}
extern "C" UOPC_HIDDEN UOPC_UNCHECKED void __tsan_init() {}
#define UOPC_IS_CHECKED 1
#else
#define UOPC_IS_CHECKED 0
#endif
