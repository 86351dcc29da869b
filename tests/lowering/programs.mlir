"memref.global"() <{sym_name = "table", type = memref<2x3xf32>, initial_value = dense<[[1.0, -0.5, 0.1], [1.0e-5, 3.0e38, 0.0]]> : tensor<2x3xf32>, sym_visibility = "private", constant}> : () -> ()
"memref.global"() <{sym_name = "state", type = memref<2xi64>, initial_value = dense<[-9223372036854775808, 7]> : tensor<2xi64>, sym_visibility = "public"}> : () -> ()
"memref.global"() <{sym_name = "odd", type = memref<4xf32>, initial_value = dense<[0x7F800000, 0xFF800000, 0x7FC00000, 0x80000000]> : tensor<4xf32>, sym_visibility = "private", constant}> : () -> ()
"memref.global"() <{sym_name = "nothing", type = memref<0x4xi32>, initial_value = dense<> : tensor<0x4xi32>, sym_visibility = "private", constant}> : () -> ()

func.func @swap(%n: index, %o: memref<3xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = arith.constant 1 : i32
  %b = arith.constant 2 : i32
  %c = arith.constant 3 : i32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b, %z = %c) -> (i32, i32, i32) {
    scf.yield %y, %z, %x : i32, i32, i32
  }
  memref.store %r#0, %o[%c0] : memref<3xi32>
  memref.store %r#1, %o[%c1] : memref<3xi32>
  memref.store %r#2, %o[%c2] : memref<3xi32>
  func.return
}

func.func @fibonacci(%n: index) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = arith.constant 0 : i64
  %b = arith.constant 1 : i64
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (i64, i64) {
    %s = arith.addi %x, %y : i64
    scf.yield %y, %s : i64, i64
  }
  func.return %r#0 : i64
}

func.func @nest(%x: memref<4x8xf32> {llvm.noalias, llvm.readonly}, %o: memref<2xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %big = arith.constant 2.0 : f32
  %total, %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %zero, %unused = %big) -> (f32, f32) {
    %row = scf.for %j = %c0 to %c8 step %c1 iter_args(%inner = %acc) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<4x8xf32>
      %s = arith.addf %inner, %v : f32
      scf.yield %s : f32
    }
    %scaled = arith.mulf %row, %big : f32
    scf.yield %scaled, %acc : f32, f32
  }
  memref.store %total, %o[%c0] : memref<2xf32>
  memref.store %last, %o[%c1] : memref<2xf32>
  func.return
}

func.func @order(%x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = memref.load %x[%c0] : memref<4xf32>
  %b = memref.load %x[%c1] : memref<4xf32>
  memref.store %b, %x[%c0] : memref<4xf32>
  memref.store %a, %x[%c1] : memref<4xf32>
  %p = memref.load %x[%c2] : memref<4xf32>
  func.call @bump(%x) : (memref<4xf32>) -> ()
  %q = memref.load %x[%c2] : memref<4xf32>
  %d = arith.subf %q, %p : f32
  memref.store %d, %x[%c2] : memref<4xf32>
  func.return
}

func.func private @bump(%x: memref<4xf32>) {
  %c2 = arith.constant 2 : index
  %one = arith.constant 1.0 : f32
  %v = memref.load %x[%c2] : memref<4xf32>
  %s = arith.addf %v, %one : f32
  memref.store %s, %x[%c2] : memref<4xf32>
  func.return
}

func.func @collatz(%start: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %three = arith.constant 3 : i64
  %steps, %end = scf.while (%k = %zero, %v = %start) : (i64, i64) -> (i64, i64) {
    %go = arith.cmpi sgt, %v, %one : i64
    scf.condition(%go) %k, %v : i64, i64
  } do {
  ^bb0(%k: i64, %v: i64):
    %odd = arith.remsi %v, %two : i64
    %is = arith.cmpi eq, %odd, %one : i64
    %next = scf.if %is -> (i64) {
      %t = arith.muli %v, %three : i64
      %u = arith.addi %t, %one : i64
      scf.yield %u : i64
    } else {
      %h = arith.divsi %v, %two : i64
      scf.yield %h : i64
    }
    %k1 = arith.addi %k, %one : i64
    scf.yield %k1, %next : i64, i64
  }
  func.return %steps : i64
}

func.func @pair(%a: i32, %b: f64) -> (f64, i32) {
  func.return %b, %a : f64, i32
}

func.func @use_pair(%o: memref<2xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = arith.constant 5 : i32
  %f = arith.constant 0.1 : f64
  %p:2 = func.call @pair(%i, %f) : (i32, f64) -> (f64, i32)
  %g = arith.sitofp %p#1 : i32 to f64
  memref.store %p#0, %o[%c0] : memref<2xf64>
  memref.store %g, %o[%c1] : memref<2xf64>
  func.return
}

func.func @even(%n: i32) -> i1 {
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %yes = arith.constant true
  %is = arith.cmpi eq, %n, %z : i32
  %r = scf.if %is -> (i1) {
    scf.yield %yes : i1
  } else {
    %m = arith.subi %n, %one : i32
    %o = func.call @odd_number(%m) : (i32) -> i1
    scf.yield %o : i1
  }
  func.return %r : i1
}

func.func private @odd_number(%n: i32) -> i1 {
  %yes = arith.constant true
  %e = func.call @even(%n) : (i32) -> i1
  %r = arith.xori %e, %yes : i1
  func.return %r : i1
}

func.func @choose(%k: index) -> i32 {
  %r = scf.index_switch %k -> i32
  case 2 {
    %a = arith.constant 20 : i32
    scf.yield %a : i32
  }
  case -5 {
    %b = arith.constant 50 : i32
    scf.yield %b : i32
  }
  default {
    %c = arith.constant -1 : i32
    scf.yield %c : i32
  }
  func.return %r : i32
}

func.func @steps(%lo: index, %hi: index, %step: index) -> i64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %r = scf.for %i = %lo to %hi step %step iter_args(%n = %zero) -> (i64) {
    %m = arith.addi %n, %one : i64
    scf.yield %m : i64
  }
  func.return %r : i64
}

func.func @narrow(%hi: i8) -> i32 {
  %lo = arith.constant -128 : i8
  %two = arith.constant 3 : i8
  %zero = arith.constant 0 : i32
  %r = scf.for %i = %lo to %hi step %two iter_args(%n = %zero) -> (i32) : i8 {
    %w = arith.extsi %i : i8 to i32
    %m = arith.addi %n, %w : i32
    scf.yield %m : i32
  }
  func.return %r : i32
}

func.func @total(%x: memref<3x5xi32>, %o: memref<2xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0 : i32
  %low = arith.constant -2147483648 : i32
  %r:3 = "scf.parallel"(%c0, %c0, %c3, %c5, %c1, %c1, %zero, %low, %zero) <{operandSegmentSizes = array<i32: 2, 2, 2, 3>}> ({
  ^bb0(%i: index, %j: index):
    %v = memref.load %x[%i, %j] : memref<3x5xi32>
    scf.reduce(%v, %v, %v : i32, i32, i32) {
    ^bb1(%a: i32, %b: i32):
      %s = arith.addi %a, %b : i32
      scf.reduce.return %s : i32
    }, {
    ^bb1(%a: i32, %b: i32):
      %m = arith.maxsi %a, %b : i32
      scf.reduce.return %m : i32
    }, {
    ^bb1(%a: i32, %b: i32):
      %u = arith.addi %a, %b : i32
      scf.reduce.return %u : i32
    }
  }) : (index, index, index, index, index, index, i32, i32, i32) -> (i32, i32, i32)
  memref.store %r#0, %o[%c0] : memref<2xi32>
  memref.store %r#1, %o[%c1] : memref<2xi32>
  func.return
}

func.func @shapes(%x: memref<6x8xf32>, %n: index, %o: memref<40xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %sub = memref.subview %x[1, 2] [3, 2] [2, 3] : memref<6x8xf32> to memref<3x2xf32, strided<[16, 3], offset: 10>>
  %part = memref.subview %x[%n, 0] [1, 8] [1, 1] : memref<6x8xf32> to memref<8xf32, strided<[1], offset: ?>>
  scf.for %i = %c0 to %c3 step %c1 {
    scf.for %j = %c0 to %c2 step %c1 {
      %v = memref.load %sub[%i, %j] : memref<3x2xf32, strided<[16, 3], offset: 10>>
      %t = arith.muli %i, %c2 : index
      %k = arith.addi %t, %j : index
      memref.store %v, %o[%k] : memref<40xf32>
    }
  }
  %p3 = memref.load %part[%c3] : memref<8xf32, strided<[1], offset: ?>>
  memref.store %p3, %o[%c8] : memref<40xf32>
  %flat = memref.collapse_shape %x [[0, 1]] : memref<6x8xf32> into memref<48xf32>
  %f = memref.load %flat[%c12] : memref<48xf32>
  %c9 = arith.constant 9 : index
  memref.store %f, %o[%c9] : memref<40xf32>
  %again = memref.reinterpret_cast %sub to offset: [4], sizes: [4, 4], strides: [1, 8] : memref<3x2xf32, strided<[16, 3], offset: 10>> to memref<4x4xf32, strided<[1, 8], offset: 4>>
  %t1 = memref.load %again[%c1, %c2] : memref<4x4xf32, strided<[1, 8], offset: 4>>
  %c10 = arith.constant 10 : index
  memref.store %t1, %o[%c10] : memref<40xf32>
  %tile = memref.alloca() {alignment = 64 : i64} : memref<3x2xf32>
  "memref.copy"(%sub, %tile) : (memref<3x2xf32, strided<[16, 3], offset: 10>>, memref<3x2xf32>) -> ()
  %t2 = memref.load %tile[%c2, %c1] : memref<3x2xf32>
  %c11 = arith.constant 11 : index
  memref.store %t2, %o[%c11] : memref<40xf32>
  %heap = memref.alloc(%n, %c4) : memref<?x?xf32>
  %d0 = memref.dim %heap, %c0 : memref<?x?xf32>
  scf.for %i = %c0 to %d0 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      %s = memref.load %x[%i, %j] : memref<6x8xf32>
      memref.store %s, %heap[%i, %j] : memref<?x?xf32>
    }
  }
  scf.for %i = %c0 to %n step %c1 {
    %s = memref.load %heap[%i, %c3] : memref<?x?xf32>
    %at = arith.addi %i, %c12 : index
    memref.store %s, %o[%at] : memref<40xf32>
  }
  memref.dealloc %heap : memref<?x?xf32>
  %stack = memref.alloca(%n) : memref<?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %s = memref.load %x[%i, %c0] : memref<6x8xf32>
    memref.store %s, %stack[%i] : memref<?xf32>
  }
  %last = arith.subi %n, %c1 : index
  %t3 = memref.load %stack[%last] : memref<?xf32>
  %c39 = arith.constant 39 : index
  memref.store %t3, %o[%c39] : memref<40xf32>
  func.return
}

func.func @constants(%o: memref<10xf32>, %s: memref<2xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  %t = memref.get_global @table : memref<2x3xf32>
  %q = memref.get_global @odd : memref<4xf32>
  scf.for %i = %c0 to %c2 step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %v = memref.load %t[%i, %j] : memref<2x3xf32>
      %k = arith.muli %i, %c3 : index
      %l = arith.addi %k, %j : index
      memref.store %v, %o[%l] : memref<10xf32>
    }
  }
  scf.for %i = %c0 to %c4 step %c1 {
    %v = memref.load %q[%i] : memref<4xf32>
    %l = arith.addi %i, %c6 : index
    memref.store %v, %o[%l] : memref<10xf32>
  }
  %z = memref.get_global @nothing : memref<0x4xi32>
  scf.for %i = %c0 to %c0 step %c1 {
    %v = memref.load %z[%i, %i] : memref<0x4xi32>
    %w = arith.sitofp %v : i32 to f32
    memref.store %w, %o[%i] : memref<10xf32>
  }
  %g = memref.get_global @state : memref<2xi64>
  %a = memref.load %g[%c0] : memref<2xi64>
  %b = memref.load %g[%c1] : memref<2xi64>
  memref.store %a, %s[%c0] : memref<2xi64>
  memref.store %b, %s[%c1] : memref<2xi64>
  %n = arith.addi %b, %b : i64
  memref.store %n, %g[%c1] : memref<2xi64>
  func.return
}

func.func @gather(%x: memref<?xf32>, %k: memref<4xi32>, %o: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %at = memref.load %k[%i] : memref<4xi32>
    %index = arith.index_cast %at : i32 to index
    %twice = arith.muli %index, %c2 : index
    %v = memref.load %x[%twice] : memref<?xf32>
    memref.store %v, %o[%i] : memref<4xf32>
  }
  func.return
}

func.func @unsigned(%x: memref<4xi8> {uopc.unsigned, llvm.readonly}, %o: memref<4xi32>, %p: memref<4xi8> {uopc.unsigned}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %v = memref.load %x[%i] : memref<4xi8>
    %w = arith.extui %v : i8 to i32
    memref.store %w, %o[%i] : memref<4xi32>
    %s = arith.addi %v, %v : i8
    memref.store %s, %p[%i] : memref<4xi8>
  }
  func.return
}

func.func @pick_buffer(%c: i1, %a: memref<2xf32>, %b: memref<2xf32>) {
  %c0 = arith.constant 0 : index
  %f = arith.constant 9.0 : f32
  %m = arith.select %c, %a, %b : memref<2xf32>
  memref.store %f, %m[%c0] : memref<2xf32>
  func.return
}

func.func @ping_pong(%n: index, %a: memref<1xi32>, %b: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (memref<1xi32>, memref<1xi32>) {
    %v = memref.load %x[%c0] : memref<1xi32>
    %w = arith.addi %v, %one : i32
    memref.store %w, %y[%c0] : memref<1xi32>
    scf.yield %y, %x : memref<1xi32>, memref<1xi32>
  }
  func.return
}

func.func @overflow(%x: i32, %y: i32) -> i64 {
  %s = arith.addi %x, %y : i32
  %w = arith.extsi %s : i32 to i64
  func.return %w : i64
}

func.func @thirds(%x: i32) -> i32 {
  %c3 = arith.constant 3 : i32
  %m = arith.muli %x, %c3 : i32
  %d = arith.floordivsi %m, %c3 : i32
  func.return %d : i32
}

func.func @bytes(%x: i8) -> i16 {
  %s = arith.addi %x, %x : i8
  %w = arith.extui %s : i8 to i16
  func.return %w : i16
}

func.func @area(%w: memref<64xi8>, %o: memref<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %a = memref.view %w[%c0][] : memref<64xi8> to memref<4xf32>
  %b = memref.view %w[%c16][] : memref<64xi8> to memref<2x2xf32>
  %f = arith.constant 2.5 : f32
  %g = arith.constant -1.0 : f32
  memref.store %f, %a[%c1] : memref<4xf32>
  memref.store %g, %b[%c1, %c1] : memref<2x2xf32>
  %p = memref.load %a[%c1] : memref<4xf32>
  %q = memref.load %b[%c1, %c1] : memref<2x2xf32>
  memref.store %p, %o[%c0] : memref<2xf32>
  memref.store %q, %o[%c1] : memref<2xf32>
  func.return
}

func.func @region(%x: i32) -> i32 {
  %r = scf.execute_region -> (i32) {
    %s = arith.addi %x, %x : i32
    scf.yield %s : i32
  }
  func.return %r : i32
}

func.func @last_of(%n: index, %x: memref<?xf32>, %o: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = memref.alloca() : memref<f32>
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %one[] : memref<f32>
  }
  %b = memref.load %one[] : memref<f32>
  memref.store %b, %o[%c0] : memref<1xf32>
  func.return
}
