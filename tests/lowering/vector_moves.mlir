func.func @moves(%x: memref<16xf32>, %y: memref<16xf32>, %m: memref<8xi1>, %n: index, %o: memref<200xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c24 = arith.constant 24 : index
  %c32 = arith.constant 32 : index
  %c40 = arith.constant 40 : index
  %c48 = arith.constant 48 : index
  %c56 = arith.constant 56 : index
  %c64 = arith.constant 64 : index
  %c72 = arith.constant 72 : index
  %c80 = arith.constant 80 : index
  %c88 = arith.constant 88 : index
  %c96 = arith.constant 96 : index
  %c13 = arith.constant 13 : index
  %c112 = arith.constant 112 : index
  %c120 = arith.constant 120 : index
  %c104 = arith.constant 104 : index
  %seven = arith.constant 7.0 : f32
  %a = vector.load %x[%c0] : memref<16xf32>, vector<8xf32>
  %b = vector.load %y[%c0] : memref<16xf32>, vector<8xf32>
  %s = vector.shuffle %a, %b [0, 15, 3, 3, 8, 1, 2, 9] : vector<8xf32>, vector<8xf32>
  vector.store %s, %o[%c0] : memref<200xf32>, vector<8xf32>
  %s3 = vector.shuffle %a, %b [7, 8, 0] : vector<8xf32>, vector<8xf32>
  vector.store %s3, %o[%c8] : memref<200xf32>, vector<3xf32>
  %two = vector.load %x[%c0] : memref<16xf32>, vector<2xf32>
  %mixed = vector.shuffle %two, %b [1, 2, 9, 0] : vector<2xf32>, vector<8xf32>
  vector.store %mixed, %o[%c16] : memref<200xf32>, vector<4xf32>
  %e = vector.extract %a[5] : f32 from vector<8xf32>
  %ed = vector.extract %a[%n] : f32 from vector<8xf32>
  %i = vector.insert %e, %b [2] : f32 into vector<8xf32>
  %j = vector.insert %ed, %i [%n] : f32 into vector<8xf32>
  vector.store %j, %o[%c24] : memref<200xf32>, vector<8xf32>
  %q = vector.broadcast %e : f32 to vector<2x4xf32>
  %w = vector.insert %mixed, %q [1] : vector<4xf32> into vector<2x4xf32>
  %w0 = vector.extract %w[0] : vector<4xf32> from vector<2x4xf32>
  %w1 = vector.extract %w[1] : vector<4xf32> from vector<2x4xf32>
  vector.store %w0, %o[%c32] : memref<200xf32>, vector<4xf32>
  vector.store %w1, %o[%c40] : memref<200xf32>, vector<4xf32>
  %k = vector.create_mask %n : vector<8xi1>
  vector.maskedstore %o[%c48], %k, %a : memref<200xf32>, vector<8xi1>, vector<8xf32>
  %l = vector.maskedload %y[%c8], %k, %a : memref<16xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  vector.store %l, %o[%c56] : memref<200xf32>, vector<8xf32>
  %mask = vector.load %m[%c0] : memref<8xi1>, vector<8xi1>
  %both = arith.andi %mask, %k : vector<8xi1>
  %picked = arith.select %both, %a, %b : vector<8xi1>, vector<8xf32>
  vector.store %picked, %o[%c64] : memref<200xf32>, vector<8xf32>
  %bit = vector.extract %both[1] : i1 from vector<8xi1>
  %num = arith.uitofp %bit : i1 to f32
  memref.store %num, %o[%c72] : memref<200xf32>
  %grown = vector.broadcast %w0 : vector<4xf32> to vector<2x4xf32>
  %g = vector.extract %grown[1, 3] : f32 from vector<2x4xf32>
  memref.store %g, %o[%c80] : memref<200xf32>
  %bits = vector.bitcast %a : vector<8xf32> to vector<4xi64>
  %back = vector.bitcast %bits : vector<4xi64> to vector<8xf32>
  %f = vector.fma %back, %b, %a : vector<8xf32>
  vector.store %f, %o[%c88] : memref<200xf32>, vector<8xf32>
  %sum = "vector.reduction"(%a) <{kind = #vector.kind<add>, fastmath = #arith.fastmath<none>}> : (vector<8xf32>) -> f32
  memref.store %sum, %o[%c96] : memref<200xf32>
  %max = "vector.reduction"(%s3, %seven) <{kind = #vector.kind<maximumf>, fastmath = #arith.fastmath<none>}> : (vector<3xf32>, f32) -> f32
  memref.store %max, %o[%c104] : memref<200xf32>
  %three = vector.load %x[%c0] : memref<16xf32>, vector<3xf32>
  %other = vector.load %y[%c0] : memref<16xf32>, vector<3xf32>
  %all = arith.cmpf une, %three, %other : vector<3xf32>
  %always = arith.cmpf true, %three, %other : vector<3xf32>
  vector.maskedstore %o[%c112], %always, %three : memref<200xf32>, vector<3xi1>, vector<3xf32>
  %kept = vector.maskedload %x[%c13], %all, %other : memref<16xf32>, vector<3xi1>, vector<3xf32> into vector<3xf32>
  vector.store %kept, %o[%c120] : memref<200xf32>, vector<3xf32>
  func.return
}
