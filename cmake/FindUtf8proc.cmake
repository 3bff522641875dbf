# utf8proc, as the target Utf8proc::utf8proc: packages of distributions often lack the CMake files that utf8proc
# itself would install.

find_path(UTF8PROC_INCLUDE_DIR utf8proc.h)
find_library(UTF8PROC_LIBRARY NAMES utf8proc utf8proc_static)
mark_as_advanced(UTF8PROC_INCLUDE_DIR UTF8PROC_LIBRARY)

if(UTF8PROC_INCLUDE_DIR)
  file(STRINGS "${UTF8PROC_INCLUDE_DIR}/utf8proc.h" UTF8PROC_VERSION
    REGEX "^#define UTF8PROC_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^;]*MAJOR +([0-9]+)[^;]*;[^;]*MINOR +([0-9]+)[^;]*;[^;]*PATCH +([0-9]+).*" "\\1.\\2.\\3"
    UTF8PROC_VERSION "${UTF8PROC_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Utf8proc
  REQUIRED_VARS UTF8PROC_LIBRARY UTF8PROC_INCLUDE_DIR VERSION_VAR UTF8PROC_VERSION)

if(Utf8proc_FOUND AND NOT TARGET Utf8proc::utf8proc)
  add_library(Utf8proc::utf8proc UNKNOWN IMPORTED)
  set_target_properties(Utf8proc::utf8proc PROPERTIES
    IMPORTED_LOCATION "${UTF8PROC_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${UTF8PROC_INCLUDE_DIR}")
endif()
