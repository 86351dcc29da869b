// RUN: uopc-opt %s --split-input-file -p group-accesses | filecheck %s
// RUN: uopc-opt %s --split-input-file -p group-accesses -t cuda | filecheck %s --check-prefix=CUDA

// Four neighbours, the first at a multiple of four. Each copy stores before the next one loads, which
// may be: the buffers do not overlap.

// CHECK-LABEL: builtin.module
// CUDA-LABEL: neighbours(const float *__restrict__ x, float *__restrict__ o)
// CUDA: float4 a = *(const float4 *)&x[i0];
// CUDA-NEXT: float b = a.x + a.x;
// CUDA: *(float4 *)&o[i0] = make_float4(b, d, f, h);
"gpu.module"() <{sym_name = "kernels"}> ({
  "gpu.func"() <{function_type = (memref<256xf32>, memref<256xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<256xf32>, %o: memref<256xf32>):
    // CHECK: %t = "gpu.thread_id"
    %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
    %four = arith.constant 4 : index
    %one = arith.constant 1 : index
    // CHECK: %i0 = arith.muli %t, %four : index
    %i0 = arith.muli %t, %four : index
    // CHECK-NEXT: %a = vector.load %x[%i0] : memref<256xf32>, vector<4xf32>
    // CHECK-NEXT: %a_1 = vector.extract %a[0] : f32 from vector<4xf32>
    %a = memref.load %x[%i0] : memref<256xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %o[%i0] : memref<256xf32>
    %i1 = arith.addi %i0, %one : index
    %c = memref.load %x[%i1] : memref<256xf32>
    %d = arith.addf %c, %c : f32
    memref.store %d, %o[%i1] : memref<256xf32>
    %i2 = arith.addi %i1, %one : index
    %e = memref.load %x[%i2] : memref<256xf32>
    %f = arith.addf %e, %e : f32
    memref.store %f, %o[%i2] : memref<256xf32>
    %i3 = arith.addi %i2, %one : index
    %g = memref.load %x[%i3] : memref<256xf32>
    %h = arith.addf %g, %g : f32
    // CHECK: vector.insert %h, %{{.*}} [3] : f32 into vector<4xf32>
    // CHECK-NEXT: vector.store %{{.*}}, %o[%i0] : memref<256xf32>, vector<4xf32>
    // CHECK-NOT: memref.
    memref.store %h, %o[%i3] : memref<256xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "neighbours", arg_attrs = [{llvm.noalias, llvm.readonly, llvm.align = 16 : i64}, {llvm.noalias, llvm.align = 16 : i64}]} : () -> ()
}) : () -> ()

// -----

// Nothing tells where %x begins; of %y two elements are aligned and not four; %z is read between.

// CHECK-LABEL: builtin.module
"gpu.module"() <{sym_name = "kernels"}> ({
  "gpu.func"() <{function_type = (memref<256xf32>, memref<256xf32>, memref<256xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<256xf32>, %y: memref<256xf32>, %z: memref<256xf32>):
    %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
    %two = arith.constant 2 : index
    %one = arith.constant 1 : index
    %i0 = arith.muli %t, %two : index
    %i1 = arith.addi %i0, %one : index
    // CHECK: %a = memref.load %x[%i0]
    // CHECK-NEXT: %b = memref.load %x[%i1]
    %a = memref.load %x[%i0] : memref<256xf32>
    %b = memref.load %x[%i1] : memref<256xf32>
    // CHECK-NEXT: %c = vector.load %y[%i0] : memref<256xf32>, vector<2xf32>
    %c = memref.load %y[%i0] : memref<256xf32>
    %d = memref.load %y[%i1] : memref<256xf32>
    %e = arith.addf %a, %c : f32
    %f = arith.addf %b, %d : f32
    // CHECK: memref.store %e, %z[%i0]
    memref.store %e, %z[%i0] : memref<256xf32>
    // CHECK-NEXT: memref.load %z[%one]
    %g = memref.load %z[%one] : memref<256xf32>
    %h = arith.addf %f, %g : f32
    // CHECK: memref.store %h, %z[%i1]
    memref.store %h, %z[%i1] : memref<256xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "unproven", arg_attrs = [{llvm.noalias}, {llvm.noalias, llvm.align = 16 : i64}, {llvm.noalias, llvm.align = 16 : i64}]} : () -> ()
}) : () -> ()

// -----

// Vectors of others: one access an element where the place is not proven to be aligned.

// CUDA-LABEL: others(const float *x, float *o)
// CUDA: float v[4] = {(&x[t])[0], (&x[t])[1], (&x[t])[2], (&x[t])[3]};
// CUDA-NEXT: (&o[t])[0] = v[3];
// CUDA-NEXT: (&o[t])[1] = v[1];
"gpu.module"() <{sym_name = "kernels"}> ({
  "gpu.func"() <{function_type = (memref<256xf32>, memref<256xf32>) -> (), kernel}> ({
  ^bb0(%x: memref<256xf32>, %o: memref<256xf32>):
    %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
    %v = vector.load %x[%t] : memref<256xf32>, vector<4xf32>
    %a = vector.extract %v[3] : f32 from vector<4xf32>
    %w = vector.insert %a, %v[0] : f32 into vector<4xf32>
    vector.store %w, %o[%t] : memref<256xf32>, vector<4xf32>
    "gpu.return"() : () -> ()
  }) {sym_name = "others", arg_attrs = [{llvm.readonly}, {}]} : () -> ()
}) : () -> ()
