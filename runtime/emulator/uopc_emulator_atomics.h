// Atomics. A block's threads take turns only where they wait, so plain reads and writes do.
#pragma once

#ifdef UOPC_CHECKED
// Not inlined: the return address is then the place in the kernel.
#define UOPC_ATOMIC_FUNCTION template <class T> UOPC_UNCHECKED static __attribute__((noinline))
#define UOPC_ATOMIC_ACCESS                                                                        \
  uopc_shared_host.access(target, sizeof(T), UOPC_ATOMIC, __builtin_return_address(0))
#else
#define UOPC_ATOMIC_FUNCTION template <class T> UOPC_INLINE
#define UOPC_ATOMIC_ACCESS (void)0
#endif

template <class T> struct uopc_plain { typedef T type; };

#define UOPC_ATOMIC_OPERATION(name, expression)                                                   \
  UOPC_ATOMIC_FUNCTION T uopc_##name(T *target, typename uopc_plain<T>::type value) {             \
    UOPC_ATOMIC_ACCESS;                                                                           \
    T old = *target;                                                                              \
    *target = expression;                                                                         \
    return old;                                                                                   \
  }
UOPC_ATOMIC_OPERATION(atomicAdd, (T)(old + value))
UOPC_ATOMIC_OPERATION(atomicSub, (T)(old - value))
UOPC_ATOMIC_OPERATION(atomicMin, value < old ? value : old)
UOPC_ATOMIC_OPERATION(atomicMax, old < value ? value : old)
UOPC_ATOMIC_OPERATION(atomicExch, value)
UOPC_ATOMIC_OPERATION(atomicAnd, old & value)
UOPC_ATOMIC_OPERATION(atomicOr, old | value)
UOPC_ATOMIC_OPERATION(atomicXor, old ^ value)
UOPC_ATOMIC_OPERATION(atomicInc, old >= value ? (T)0 : (T)(old + 1))
UOPC_ATOMIC_OPERATION(atomicDec, old == 0 || old > value ? value : (T)(old - 1))
UOPC_ATOMIC_FUNCTION T uopc_atomicCAS(T *target, typename uopc_plain<T>::type expected,
                                      typename uopc_plain<T>::type value) {
  UOPC_ATOMIC_ACCESS;
  T old = *target;
  if (old == expected) *target = value;
  return old;
}

// Exactly the overloads that CUDA has: one that it lacks must not compile here either.
#define UOPC_ATOMIC(name, type)                                                                   \
  UOPC_INLINE type name(type *target, type value) { return uopc_##name<type>(target, value); }
#define UOPC_ATOMIC_CAS(type)                                                                     \
  UOPC_INLINE type atomicCAS(type *target, type expected, type value) {                           \
    return uopc_atomicCAS<type>(target, expected, value);                                         \
  }
#define UOPC_ATOMIC_32(name) UOPC_ATOMIC(name, int) UOPC_ATOMIC(name, unsigned)
#define UOPC_ATOMIC_INTEGERS(name)                                                                \
  UOPC_ATOMIC_32(name) UOPC_ATOMIC(name, long long) UOPC_ATOMIC(name, unsigned long long)
#define UOPC_ATOMIC_BITS(name) UOPC_ATOMIC_32(name) UOPC_ATOMIC(name, unsigned long long)

UOPC_ATOMIC_BITS(atomicAdd)
UOPC_ATOMIC(atomicAdd, float)
UOPC_ATOMIC(atomicAdd, double)
UOPC_ATOMIC_32(atomicSub)
UOPC_ATOMIC_INTEGERS(atomicMin)
UOPC_ATOMIC_INTEGERS(atomicMax)
UOPC_ATOMIC_BITS(atomicExch)
UOPC_ATOMIC(atomicExch, float)
UOPC_ATOMIC_BITS(atomicAnd)
UOPC_ATOMIC_BITS(atomicOr)
UOPC_ATOMIC_BITS(atomicXor)
UOPC_ATOMIC(atomicInc, unsigned)
UOPC_ATOMIC(atomicDec, unsigned)
UOPC_ATOMIC_CAS(int)
UOPC_ATOMIC_CAS(unsigned)
UOPC_ATOMIC_CAS(unsigned long long)
UOPC_ATOMIC_CAS(unsigned short)
