// Matrix fragments (mma.h): each lane holds its share of a tile, in an order that is no one's
// business, as in CUDA. A product is computed once a warp, by the last lane that comes.
//
// Sums run over k in ascending order in f32; a tensor core sums in an order of its own.
#pragma once

namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}

template <class A, class B> struct same { static constexpr bool value = false; };
template <class A> struct same<A, A> { static constexpr bool value = true; };
template <class T> struct storage { typedef T type; };
template <> struct storage<precision::tf32> { typedef float type; };

template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment {
  static constexpr int rows = same<Use, matrix_b>::value ? K : M;
  static constexpr int columns = same<Use, matrix_a>::value ? K : N;
  static constexpr int num_elements = rows * columns / 32;
  typedef T element_type;
  typedef typename storage<T>::type storage_element_type;
  // Lane l holds elements [l * num_elements, (l + 1) * num_elements) of the tile, row by row.
  storage_element_type x[num_elements];
};

// tf32 has f32's exponent and 10 bits of its fraction; rounding is to nearest, ties away.
UOPC_INLINE float __float_to_tf32(float value) {
  const unsigned bits = uopc_bits<unsigned>(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;
  return uopc_bits<float>((bits + 0x1000u) & ~0x1fffu);
}

template <class F, class T> UOPC_INLINE void fill_fragment(F &fragment, T value) {
  for (int i = 0; i < F::num_elements; i++)
    fragment.x[i] = (typename F::storage_element_type)value;
}

template <class F> UOPC_INLINE size_t place(int element, unsigned stride, bool row_major) {
  const unsigned row = element / F::columns, column = element % F::columns;
  return row_major ? (size_t)row * stride + column : (size_t)column * stride + row;
}

template <class T> UOPC_INLINE void meet(const T *address, unsigned stride, uopc_site site) {
  uopc_together(UOPC_MATRIX_ADDRESS, ~0u, (unsigned long long)address, (int)stride, sizeof(T), site);
}

template <class Use, int M, int N, int K, class T, class Layout, class P>
UOPC_INLINE void load_matrix_sync(fragment<Use, M, N, K, T, Layout> &into, const P *address,
                                  unsigned stride, UOPC_HERE) {
  typedef fragment<Use, M, N, K, T, Layout> F;
  meet(address, stride, UOPC_SITE);
  const int first = uopc_current->lane * F::num_elements;
  for (int i = 0; i < F::num_elements; i++)
    into.x[i] = address[place<F>(first + i, stride, same<Layout, row_major>::value)];
}

template <int M, int N, int K, class T>
UOPC_INLINE void load_matrix_sync(fragment<accumulator, M, N, K, T> &into, const T *address,
                                  unsigned stride, layout_t layout, UOPC_HERE) {
  typedef fragment<accumulator, M, N, K, T> F;
  meet(address, stride, UOPC_SITE);
  const int first = uopc_current->lane * F::num_elements;
  for (int i = 0; i < F::num_elements; i++)
    into.x[i] = address[place<F>(first + i, stride, layout == mem_row_major)];
}

template <int M, int N, int K, class T>
UOPC_INLINE void store_matrix_sync(T *address, const fragment<accumulator, M, N, K, T> &from,
                                   unsigned stride, layout_t layout, UOPC_HERE) {
  typedef fragment<accumulator, M, N, K, T> F;
  meet(address, stride, UOPC_SITE);
  const int first = uopc_current->lane * F::num_elements;
  for (int i = 0; i < F::num_elements; i++)
    address[place<F>(first + i, stride, layout == mem_row_major)] = from.x[i];
}

template <class F, class S> UOPC_UNCHECKED static void gather(S *tile, const F &share, int lane) {
  for (int i = 0; i < F::num_elements; i++) tile[lane * F::num_elements + i] = (S)share.x[i];
}

template <class S, class D, class A, class B, class C> struct product {
  D *result;
  const A *left;
  const B *right;
  const C *addend;
  UOPC_UNCHECKED static void run(void **lanes) {
    constexpr int M = D::rows, N = D::columns, K = A::columns;
    product **all = (product **)lanes;
    S left[M * K], right[K * N], sum[M * N];
    for (int lane = 0; lane < 32; lane++) {
      gather(left, *all[lane]->left, lane);
      gather(right, *all[lane]->right, lane);
      gather(sum, *all[lane]->addend, lane);
    }
    for (int i = 0; i < M; i++)
      for (int k = 0; k < K; k++)
        for (int j = 0; j < N; j++) sum[i * N + j] += left[i * K + k] * right[k * N + j];
    for (int lane = 0; lane < 32; lane++)
      for (int i = 0; i < D::num_elements; i++)
        all[lane]->result->x[i] =
            (typename D::storage_element_type)sum[lane * D::num_elements + i];
  }
};

template <class T> struct sums_in { typedef float type; };
template <> struct sums_in<double> { typedef double type; };
template <> struct sums_in<int> { typedef int type; };

template <class D, class A, class B, class C>
UOPC_INLINE void mma_sync(D &result, const A &left, const B &right, const C &addend, UOPC_HERE) {
  typedef product<typename sums_in<typename D::element_type>::type, D, A, B, C> P;
  P share{&result, &left, &right, &addend};
  uopc_shared_host.warp_function(&P::run, &share, UOPC_SITE);
}

}  // namespace wmma
}  // namespace nvcuda
