# Fovea promises what masked rows, infinities and NaN do, and the same bits for any number of threads.
# -ffast-math and its parts let the compiler assume that none of them occurs, so they are refused here,
# whether they come by a variable, by a parent project's options, or by a compiler that sets them itself.

include(CheckCXXSourceCompiles)

get_directory_property(fovea_flags COMPILE_OPTIONS)
string(JOIN " " fovea_flags ${fovea_flags} ${CMAKE_CXX_FLAGS})
foreach(config IN ITEMS ${CMAKE_CONFIGURATION_TYPES} ${CMAKE_BUILD_TYPE})
  string(TOUPPER ${config} config)
  string(APPEND fovea_flags " ${CMAKE_CXX_FLAGS_${config}}")
endforeach()

set(fovea_refused
  -Ofast -ffast-math -funsafe-math-optimizations -ffinite-math-only
  -fassociative-math -freciprocal-math -fno-signed-zeros)
foreach(flag IN LISTS fovea_refused)
  if(" ${fovea_flags} " MATCHES "[ ;:>]${flag}[ ;>]")
    message(FATAL_ERROR
      "[fovea] ${flag} is among the compiler's flags, and Fovea's results are not right under it. "
      "Remove it from CXXFLAGS, CMAKE_CXX_FLAGS or add_compile_options.")
  endif()
endforeach()

check_cxx_source_compiles("
  #if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
  #error fast math
  #endif
  int main() { return 0; }" FOVEA_MATH_IS_EXACT)
if(NOT FOVEA_MATH_IS_EXACT)
  unset(FOVEA_MATH_IS_EXACT CACHE)
  message(FATAL_ERROR
    "[fovea] the compiler makes __FAST_MATH__ or __FINITE_MATH_ONLY__ true of itself, and Fovea's results are "
    "not right under -ffast-math. Look at CXX and at the toolchain file.")
endif()
