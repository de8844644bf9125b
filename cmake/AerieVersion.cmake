# Writes generated/aerie_version.h: project version and source revision.
set(AERIE_SOURCE_REVISION "" CACHE STRING "Revision of the source, for builds from a copy without its repository")
set(AERIE_REVISION "${AERIE_SOURCE_REVISION}")
find_package(Git QUIET)
if(NOT AERIE_REVISION AND Git_FOUND AND EXISTS ${CMAKE_SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short=12 HEAD
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE AERIE_REVISION
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
configure_file(${CMAKE_SOURCE_DIR}/cmake/aerie_version.h.in
  ${CMAKE_BINARY_DIR}/generated/aerie_version.h @ONLY)
