// RUN: uopc-opt %s -t c | filecheck %s
// RUN: uopc-opt %s -t 'c{header=true}' | filecheck %s --check-prefix HEADER
// RUN: uopc-opt %s -t 'c{static-kernels=false}' | filecheck %s --check-prefix SHARED

// A kernel, its plan, a constant: one C file that needs <stdint.h> and nothing else.

"memref.global"() <{sym_name = "const0", type = memref<3xf32>, initial_value = dense<[1.0, 0.1, -2.5]> : tensor<3xf32>, sym_visibility = "private", constant}> : () -> ()

func.func private @r_4(%x: memref<4x8xf32> {llvm.noalias, llvm.readonly},
                       %o: memref<4xf32> {llvm.noalias})
    attributes {uopc.doc = "max over axis 1 */ then relu"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c4 step %c1 {
    %m = scf.for %j = %c0 to %c8 step %c1 iter_args(%acc = %low) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<4x8xf32>
      %n = arith.maximumf %acc, %v : f32
      scf.yield %n : f32
    }
    %r = arith.maximumf %m, %zero : f32
    memref.store %r, %o[%i] : memref<4xf32>
  }
  func.return
}

func.func @main(%n: index, %x: memref<4x8xf32> {llvm.noalias, llvm.readonly, uopc.name = "for"},
                %out0: memref<4xf32> {llvm.noalias}, %workspace: memref<64xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %t = memref.view %workspace[%c16][] : memref<64xi8> to memref<4xf32>
  func.call @r_4(%x, %t) : (memref<4x8xf32>, memref<4xf32>) -> ()
  %g = memref.get_global @const0 : memref<3xf32>
  %b = memref.load %g[%c1] : memref<3xf32>
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %t[%i] : memref<4xf32>
    %s = arith.addf %a, %b : f32
    memref.store %s, %out0[%i] : memref<4xf32>
  }
  func.return
}

// Integers wrap, whatever the compiler would like to assume.
func.func @wrap(%a: i32, %b: i32, %c: i8) -> i32 {
  %s = arith.addi %a, %b : i32
  %p = arith.muli %s, %s : i32
  %k = arith.constant 5 : i8
  %t = arith.subi %c, %k : i8
  %w = arith.extsi %t : i8 to i32
  %q = arith.divsi %p, %w : i32
  func.return %q : i32
}

// CHECK: #include <stdint.h>
// CHECK-NOT: #include
// CHECK: static const float const0[3] = {1.0f, 0.1f, -2.5f};
// CHECK: static inline int32_t div_i32(int32_t a, int32_t b)
// CHECK: return b == 0 ? -1 : b == -1 ? (int32_t)(0 - (uint32_t)a) : (int32_t)(a / b);
// CHECK: void main_(int64_t n, const float *for_, float *out0, int8_t *workspace);
// CHECK-NEXT: int32_t wrap(int32_t a, int32_t b, int8_t c);

// CHECK: /* max over axis 1 * / then relu */
// CHECK-NEXT: static void r_4(const float *restrict x, float *restrict o)
// CHECK-NEXT: {
// CHECK-NEXT:     for (int64_t i = 0; i < 4; i++) {
// CHECK-NEXT:         float acc = -INF_F32;
// CHECK-NEXT:         for (int64_t j = 0; j < 8; j++) {
// CHECK-NEXT:             acc = max_f32(acc, x[i*8 + j]);
// CHECK-NEXT:         }
// CHECK-NEXT:         o[i] = acc <= 0.0f ? 0.0f : acc;
// CHECK-NEXT:     }
// CHECK-NEXT: }

// CHECK: void main_(int64_t n, const float *restrict for_, float *restrict out0, int8_t *workspace)
// CHECK-NEXT: {
// CHECK-NEXT:     float *t = (float *)(workspace + 16);
// CHECK-NEXT:     r_4(for_, t);
// CHECK-NEXT:     float b = const0[1];
// CHECK-NEXT:     for (int64_t i = 0; i < n; i++) {
// CHECK-NEXT:         out0[i] = t[i] + b;

// CHECK: int32_t wrap(int32_t a, int32_t b, int8_t c)
// CHECK-NEXT: {
// CHECK-NEXT:     int32_t s = (int32_t)((uint32_t)a + (uint32_t)b);
// CHECK-NEXT:     return div_i32((int32_t)((uint32_t)s * (uint32_t)s), (int8_t)(c - 5));

// HEADER: #ifndef UOPC_MAIN__H
// HEADER: extern "C" {
// HEADER: /* for_: 4x8 f32; out0: 4 f32; workspace: 64 bytes, aligned to 64 */
// HEADER-NEXT: void main_(int64_t n, const float *for_, float *out0, int8_t *workspace);
// HEADER: int32_t wrap(int32_t a, int32_t b, int8_t c);

// SHARED: {{^}}void r_4(const float *x, float *o);

// Two loads a step from one buffer under conditions: GCC before 14 would mask the wrong lanes.
func.func @pairs(%x: memref<8xf32> {llvm.noalias, llvm.readonly}, %c: i1, %n: index, %o: memref<8xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c4 step %c1 {
    %a = scf.if %c -> (f32) {
      %v = memref.load %x[%i] : memref<8xf32>
      scf.yield %v : f32
    } else {
      scf.yield %zero : f32
    }
    memref.store %a, %o[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %n step %c1 {
    %a = scf.if %c -> (f32) {
      %v = memref.load %x[%i] : memref<8xf32>
      scf.yield %v : f32
    } else {
      scf.yield %zero : f32
    }
    memref.store %a, %o[%i] : memref<8xf32>
  }
  func.return
}

// CHECK: void pairs(const float *restrict x, uint8_t c, int64_t n, float *restrict o)
// CHECK-NEXT: {
// CHECK-NEXT:     for (int64_t i = 0; i < 4; i++) {
// CHECK-NEXT:         float a;
// CHECK-NEXT:         if (c) {
// CHECK-NEXT:             load_alone();
// CHECK-NEXT:             a = x[i];
// CHECK:          for (int64_t i = 0; i < n; i++) {
// CHECK-NEXT:         float a;
// CHECK-NEXT:         if (c) {
// CHECK-NEXT:             a = x[i];

// A condition that the bounds decide is not asked.
func.func @decided(%x: memref<8xf32> {llvm.noalias, llvm.readonly}, %o: memref<8xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %inside = arith.cmpi sge, %i, %c0 : index
    scf.if %inside {
      %v = memref.load %x[%i] : memref<8xf32>
      memref.store %v, %o[%i] : memref<8xf32>
    }
    %outside = arith.cmpi sge, %i, %c8 : index
    %w = scf.if %outside -> (f32) {
      %v = memref.load %x[%c0] : memref<8xf32>
      scf.yield %v : f32
    } else {
      %v = memref.load %x[%c1] : memref<8xf32>
      scf.yield %v : f32
    }
    memref.store %w, %o[%c0] : memref<8xf32>
  }
  func.return
}

// CHECK: void decided(const float *restrict x, float *restrict o)
// CHECK-NEXT: {
// CHECK-NEXT:     for (int64_t i = 0; i < 8; i++) {
// CHECK-NOT: if
// CHECK:              o[i] = x[i];
// CHECK-NOT: if
// CHECK:              x[1]
// CHECK:     }
