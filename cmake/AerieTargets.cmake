# aerie_library, aerie_program and aerie_test: the only ways to make a target here. They set the language level, the
# include root (the repository: includes read "common/wiring.h"), warnings and sanitizers.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(AERIE_CCACHE ccache)
if(AERIE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A base folder lets a second checkout build from what the first one compiled. Precompiled headers are cacheable only
  # when ccache may ignore their times.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${AERIE_CCACHE})
endif()

if(AERIE_SANITIZE)
  add_compile_options(-fsanitize=${AERIE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${AERIE_SANITIZE})
endif()

find_package(absl REQUIRED)
find_package(Threads REQUIRED)

function(aerie_set_up target)
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(${target} PRIVATE -Wthread-safety)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 reports overlaps that cannot happen in its own std::string (bug 105651), and the members that designated
    # initializers leave to their defaults.
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-missing-field-initializers)
  endif()
  if(AERIE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# aerie_library(engine SRCS a.cc b.cc DEPS aerie::common) makes the target aerie_engine, alias aerie::engine.
function(aerie_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(aerie_${name} STATIC ${ARG_SRCS})
  add_library(aerie::${name} ALIAS aerie_${name})
  aerie_set_up(aerie_${name})
  target_link_libraries(aerie_${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
endfunction()

# aerie_program(aerie-server SRCS main.cc DEPS ...) makes build/<preset>/bin/aerie-server.
function(aerie_program name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  aerie_set_up(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()

# aerie_test(batcher_test SRCS server/engine/batcher_test.cc DEPS aerie::engine LABELS torchfree)
# Paths are relative to tests/. One program and one CTest test a name.
function(aerie_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SRCS;DEPS;LABELS;ENVIRONMENT" ${ARGN})
  list(TRANSFORM ARG_SRCS PREPEND ${CMAKE_SOURCE_DIR}/tests/)
  add_executable(${name} ${ARG_SRCS})
  aerie_set_up(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "AERIE_SOURCE_DIR=${CMAKE_SOURCE_DIR};${ARG_ENVIRONMENT}")
endfunction()

# Adds a folder once it has a CMakeLists.txt.
function(aerie_folder folder)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${folder})
  endif()
endfunction()
