# Includes run one way between the rooms of the house; each line that runs another way is printed.
#   cmake -DROOT=<folder> -P include_direction.cmake

cmake_minimum_required(VERSION 3.25)

# room(<folder> SEES <the rooms it may include from, besides itself and the folders below it>)
# A public header, include/fovea/<room>/..., belongs to the same room as its source, <room>/...; a file belongs
# to the innermost room that it lies in.
set(rooms "")
macro(room folder)
  list(APPEND rooms ${folder})
  set(${folder}_sees ${folder} ${ARGN})
  list(REMOVE_ITEM ${folder}_sees SEES)
endmacro()

set(below "")  # the rooms further down than the one that is declared
macro(next_floor)
  list(APPEND below ${ARGN})
endmacro()

room(autograd/base)
room(autograd/kernels  SEES autograd/base)
room(autograd/tensor   SEES autograd/base autograd/kernels)
room(autograd/graph    SEES autograd/base autograd/kernels autograd/tensor)
room(autograd/ops      SEES autograd/base autograd/kernels autograd/tensor autograd/graph)
next_floor(autograd/base autograd/kernels autograd/tensor autograd/graph autograd/ops)

room(layers            SEES ${below})
next_floor(layers)

room(gradcheck         SEES ${below})
room(cases             SEES ${below} gradcheck)
room(inspect           SEES ${below})

room(train/io          SEES ${below})
room(train/tokenizers  SEES ${below} train/io)
room(train/data        SEES ${below} train/io train/tokenizers)
room(train/optimizers  SEES ${below})
room(train/loop        SEES ${below} train/io train/data train/optimizers)
room(train/generate    SEES ${below} train/io train/tokenizers train/data)
room(train/tasks       SEES ${below} train/io train/tokenizers train/data train/optimizers train/loop
                            train/generate)
next_floor(gradcheck inspect
  train/io train/tokenizers train/data train/optimizers train/loop train/generate train/tasks)

room(fovea.h           SEES ${below})
room(eigen.h           SEES autograd/base autograd/tensor autograd/ops)
room(cli               SEES ${below} cases fovea.h)

# The one public header of the room ops stands at its door.
set(doors "autograd/ops.h=autograd/ops/ops.h")

function(room_of path result)
  string(REGEX REPLACE "^(include/)?fovea/" "" path "${path}")
  foreach(door IN LISTS doors)
    string(REPLACE "=" ";" door "${door}")
    list(GET door 0 from)
    list(GET door 1 to)
    if(path STREQUAL from)
      set(path "${to}")
    endif()
  endforeach()
  set(found "no room")
  foreach(room IN LISTS rooms)
    string(FIND "${path}/" "${room}/" at)
    if(at EQUAL 0)
      set(found ${room})
    endif()
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

set(faults 0)
macro(fault)
  message("${file}: ${ARGV0}: ${line}")
  math(EXPR faults "${faults} + 1")
endmacro()

set(globs include/*.h)
foreach(folder IN ITEMS autograd layers gradcheck cases train inspect cli)
  list(APPEND globs ${folder}/*.h ${folder}/*.cpp)
endforeach()
list(TRANSFORM globs PREPEND "${ROOT}/")
file(GLOB_RECURSE files RELATIVE "${ROOT}" ${globs})
if(NOT files)
  message(FATAL_ERROR "There are no sources in ${ROOT}")
endif()

foreach(file IN LISTS files)
  room_of(${file} here)
  if(here STREQUAL "no room")
    set(line "move it into one, or give its folder a line in ${CMAKE_CURRENT_LIST_FILE}")
    fault("this file lies in no room")
    continue()
  endif()
  file(STRINGS "${ROOT}/${file}" lines REGEX "^[ \t]*#[ \t]*include")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^[^<\"]*[<\"]([^>\"]*)[>\"].*" "\\1" included "${line}")
    if(line MATCHES "\"|<fovea/")
      room_of(${included} there)
      if(NOT there IN_LIST ${here}_sees)
        fault("${here} may not include from ${there}")
      endif()
    elseif(included MATCHES "^(unsupported/)?Eigen/" AND file MATCHES "^include/" AND NOT here STREQUAL eigen.h)
      fault("Eigen stays inside")
    endif()
  endforeach()
endforeach()

list(LENGTH files count)
if(faults)
  message(FATAL_ERROR "${faults} includes run the wrong way in ${count} files")
endif()
message("${count} files: all includes run the right way")
