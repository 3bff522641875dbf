# What every target of the project has in common, and the library's optional part.

include(CheckCXXCompilerFlag)

# C++20 without extensions, warnings, and the repository as the root of private includes.
function(fovea_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Wold-style-cast
    $<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wshadow>  # GCC's also warns of what a lambda can't see
    $<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wno-bitwise-instead-of-logical>  # meant: no branch in the loop
    # What GCC 12 says of headers of its own: <regex>, <string>, and the intrinsics of AVX-512.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized -Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow -Wno-stringop-overread>
    # What GCC says where several files are compiled as one: that a file-local type is used in another file.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>
    $<$<BOOL:${FOVEA_WERROR}>:-Werror>)
endfunction()

# What the library's parts are compiled with besides.
function(fovea_part target)
  fovea_target(${target})
  fovea_native(${target})
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  # A project that has Fovea as a part, and no build type, would get a library that is many times slower.
  target_compile_options(${target} PRIVATE $<$<CONFIG:>:-O3>)
  # errno and floating-point traps are never looked at; both stand in the way of vector code.
  target_compile_options(${target} PRIVATE -fno-math-errno -fno-trapping-math)
endfunction()

# The headers of other libraries that many of a target's sources include are read once: that halves the work
# for a test. JSON is not among them: GCC instantiates what a precompiled header uses in every source, which
# for JSON takes as long as a small source. The preset `sanitize` goes without precompiled headers, and so sees a
# source that does not include what it uses.
function(fovea_precompile target)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <cmath> <filesystem> <functional> <map> <memory> <optional> <set> <span> <string> <vector>
    <fmt/format.h> ${ARGN})
endfunction()

# fovea_unity(<target> <n> [ONE_BY_ONE <files>]): the files of a folder are compiled as one, or as several of about
# n files each, since most of the compiler's time goes into headers and what they instantiate. The name of a file
# decides with which others of its folder it is compiled, so that a new file leaves the others where they are. The
# preset `sanitize` compiles each alone.
function(fovea_unity target n)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "ONE_BY_ONE")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${FOVEA_UNITY} UNITY_BUILD_MODE GROUP)
  # GCC stops to inline where that has made its input 40 % larger, which hot loops of a large input do not survive.
  target_compile_options(${target} PRIVATE
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${FOVEA_UNITY}>>:--param=inline-unit-growth=300>)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  list(REMOVE_ITEM sources ${arg_ONE_BY_ONE})
  foreach(source IN LISTS sources)
    cmake_path(GET source FILENAME name)
    cmake_path(GET source PARENT_PATH folder)
    file(GLOB neighbours "${folder}/*.cpp")
    list(LENGTH neighbours count)
    string(MD5 hash "${name}")
    string(SUBSTRING "${hash}" 18 6 digits)
    math(EXPR part "0x${digits} % (1 + (${count} - 1) / ${n})")
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    string(MAKE_C_IDENTIFIER "${folder}" room)
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${room}_${part}")
  endforeach()
endfunction()

# fovea_optimise(<target> <option>): for what leaves the computing to the library, where more than -O1 or -O0 takes
# time from the compiler and gives none.
function(fovea_optimise target option)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${option}>)
endfunction()

# -march=native stays inside the library: its users compile with flags of their own.
function(fovea_native target)
  if(FOVEA_NATIVE)
    check_cxx_compiler_flag(-march=native FOVEA_HAS_MARCH_NATIVE)
    if(FOVEA_HAS_MARCH_NATIVE)
      target_compile_options(${target} PRIVATE -march=native)
    endif()
  endif()
endfunction()
