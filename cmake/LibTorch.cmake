# aerie::libtorch: LibTorch for programs on the CPU, taken from the Python wheel.
#
# Not find_package(Torch): TorchConfig.cmake of this wheel looks for a CUDA toolkit and links its libraries into every
# program. torch_cpu and c10 alone carry the CPU; their own RPATH finds what they need beside them.

if(NOT AERIE_LIBTORCH_ROOT)
  file(GLOB AERIE_LIBTORCH_FOUND LIST_DIRECTORIES true
    ${CMAKE_SOURCE_DIR}/build/venv/lib/python3*/site-packages/torch)
  list(APPEND AERIE_LIBTORCH_FOUND ${CMAKE_SOURCE_DIR}/build/venv/lib/python3/site-packages/torch)
  list(GET AERIE_LIBTORCH_FOUND 0 AERIE_LIBTORCH_FOUND)
  set(AERIE_LIBTORCH_ROOT ${AERIE_LIBTORCH_FOUND} CACHE PATH
    "LibTorch: the folder with include/ and lib/, e.g. that of the Python package torch" FORCE)
endif()

foreach(file include/torch/csrc/api/include/torch/torch.h lib/libtorch_cpu.so lib/libc10.so)
  if(NOT EXISTS ${AERIE_LIBTORCH_ROOT}/${file})
    set(missing ${file})
    set(root ${AERIE_LIBTORCH_ROOT})
    unset(AERIE_LIBTORCH_ROOT CACHE)  # So that the next configure looks again.
    message(FATAL_ERROR
      "LibTorch: there is no ${missing} in ${root}; expected the folder of the Python package torch 2.11. "
      "Run tests/run or demo/run, which install it there, or pass -DAERIE_LIBTORCH_ROOT=<folder>, "
      "or -DAERIE_WITH_LIBTORCH=OFF to build without the model.")
  endif()
endforeach()
message(STATUS "LibTorch: ${AERIE_LIBTORCH_ROOT}")

foreach(library c10 torch_cpu)
  add_library(aerie_libtorch_${library} SHARED IMPORTED GLOBAL)
  set_target_properties(aerie_libtorch_${library} PROPERTIES
    IMPORTED_LOCATION ${AERIE_LIBTORCH_ROOT}/lib/lib${library}.so)
endforeach()

add_library(aerie_libtorch INTERFACE IMPORTED GLOBAL)
add_library(aerie::libtorch ALIAS aerie_libtorch)
target_link_libraries(aerie_libtorch INTERFACE aerie_libtorch_torch_cpu aerie_libtorch_c10)
# -idirafter, not -isystem: LibTorch ships headers of another protobuf (include/google/protobuf), which must lose against
# the one that we link. Last in the search order, they are only seen by code that has no protobuf of its own.
target_compile_options(aerie_libtorch INTERFACE
  "SHELL:-idirafter ${AERIE_LIBTORCH_ROOT}/include/torch/csrc/api/include"
  "SHELL:-idirafter ${AERIE_LIBTORCH_ROOT}/include")
