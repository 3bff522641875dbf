#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

// Eight numbers in vector registers. Compilers keep such vectors in registers where they write the same
// arithmetic on Eigen's small arrays to memory and read it again, which takes several times as long.
namespace fovea::kernels {

// Functions of such vectors are inlined, so that it does not matter how a call would pass them.
#pragma GCC diagnostic ignored "-Wpsabi"

template <class T>
struct EightOf {
  using Type __attribute__((vector_size(8 * sizeof(T)))) = T;
};
template <class T>
using Eight = typename EightOf<T>::Type;

/// The number of elements of a whole vector, as a type: so the compiler knows that no lane is missing. At the
/// end of a row, where lanes may be missing, the number is a std::int64_t instead.
using AllEight = std::integral_constant<std::int64_t, 8>;

/// Calls f(i, count) for the vectors of a row of n elements; `count` is AllEight for all but the last.
template <class F>
void for_each_eight(std::int64_t n, const F& f) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) f(i, AllEight());
  if (i < n) f(i, n - i);
}

/// Loads or stores the first `count` elements; the other lanes are loaded as 0.
template <class T>
Eight<T> load_eight(const T* data, AllEight) {
  Eight<T> v;
  std::memcpy(&v, data, sizeof(v));
  return v;
}
template <class T>
Eight<T> load_eight(const T* data, std::int64_t count) {
  Eight<T> v = {};
  for (std::int64_t i = 0; i < count; ++i) v[i] = data[i];
  return v;
}
template <class T>
void store_eight(const Eight<T>& v, T* data, AllEight) {
  std::memcpy(data, &v, sizeof(v));
}
template <class T>
void store_eight(const Eight<T>& v, T* data, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) data[i] = v[i];
}

/// 0 in place of the lanes from `count` on.
inline Eight<double> first_lanes(const Eight<double>& v, AllEight) { return v; }
inline Eight<double> first_lanes(const Eight<double>& v, std::int64_t count) {
  constexpr Eight<std::int64_t> lane{0, 1, 2, 3, 4, 5, 6, 7};
  return lane < count ? v : Eight<double>{};
}

/// Converts every lane to another type.
template <class To, class From>
Eight<To> convert(const Eight<From>& v) {
  return __builtin_convertvector(v, Eight<To>);
}

inline double sum_of_lanes(const Eight<double>& v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

}  // namespace fovea::kernels
