#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea {

/// The type of a tensor's elements. A property of the value, not of the C++ type: the same layer trains in
/// f32 and is checked in f64.
enum class Dtype : std::uint8_t { f32, f64 };

inline constexpr Dtype f32 = Dtype::f32;
inline constexpr Dtype f64 = Dtype::f64;

constexpr std::size_t size_of(Dtype dtype) { return dtype == f32 ? sizeof(float) : sizeof(double); }
constexpr const char* name_of(Dtype dtype) { return dtype == f32 ? "f32" : "f64"; }

/// The Dtype that holds C++ type T.
template <class T>
inline constexpr Dtype dtype_of = Dtype::f32;
template <>
inline constexpr Dtype dtype_of<double> = Dtype::f64;

/// Calls f.template operator()<T>() with T = float or double.
template <class F>
decltype(auto) dispatch(Dtype dtype, F&& f) {
  return dtype == f32 ? f.template operator()<float>() : f.template operator()<double>();
}

}  // namespace fovea
