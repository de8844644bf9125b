# cmake --install BUILD --prefix DIR [--component NAME]: a tree that runs wherever it is moved to.
#
#   server     bin/aerie-server
#   tools      bin/aerie-load, aerie-inspect, aerie-verify and whatever else a shell wants
#   libraries  lib/aerie: what programs need of LibTorch, with its licences; both of the above need it
#   docs       share/doc/aerie, the contract included
#   deploy     share/aerie/deploy, and the units of systemd
#
# What one would get wrong: Debian's libraries are not in the tree. docker/runtime-packages.txt names the packages, and
# a test holds that list against what the programs open.
set(AERIE_LIBRARIES_DIR lib/aerie)

set(aerie_with_libtorch)
foreach(program aerie-server aerie-admin aerie-load aerie-inspect aerie-verify)
  if(NOT TARGET ${program})
    continue()
  endif()
  set(component tools)
  if(program STREQUAL aerie-server)
    set(component server)
  endif()
  # Not into DIR/lib: a prefix such as /usr/local would give its libgomp to every other program there.
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../${AERIE_LIBRARIES_DIR}")
  if(AERIE_WITH_LIBTORCH)
    install(TARGETS ${program} RUNTIME_DEPENDENCY_SET aerie_libraries
      RUNTIME DESTINATION bin COMPONENT ${component})
  else()
    install(TARGETS ${program} RUNTIME DESTINATION bin COMPONENT ${component})
  endif()
endforeach()

if(AERIE_WITH_LIBTORCH)
  # What does not come from the system: LibTorch and the few CUDA libraries that its CPU part names.
  install(RUNTIME_DEPENDENCY_SET aerie_libraries
    PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|rt|dl|util|pthread|stdc[+][+]|gcc_s)[.]so"
    POST_EXCLUDE_REGEXES "^/(usr/)?lib/" "^/lib64/"
    LIBRARY DESTINATION ${AERIE_LIBRARIES_DIR} COMPONENT libraries)
  file(GLOB aerie_licences ${AERIE_LIBTORCH_ROOT}/../torch-*.dist-info/licenses
    ${AERIE_LIBTORCH_ROOT}/../nvidia_cuda_runtime-*.dist-info/licenses
    ${AERIE_LIBTORCH_ROOT}/../nvidia_cuda_cupti-*.dist-info/licenses)
  foreach(folder ${aerie_licences})
    string(REGEX REPLACE ".*/([^/]+)-[^/]*/licenses$" "\\1" package ${folder})
    install(DIRECTORY ${folder}/ DESTINATION share/doc/aerie/third_party/${package} COMPONENT libraries)
  endforeach()
endif()

install(FILES README.md CHANGELOG.md LICENSE DESTINATION share/doc/aerie COMPONENT docs)
install(DIRECTORY docs/ DESTINATION share/doc/aerie/docs COMPONENT docs)
install(DIRECTORY proto/aerie DESTINATION share/doc/aerie/proto COMPONENT docs FILES_MATCHING PATTERN "*.proto")

install(DIRECTORY deploy/ DESTINATION share/aerie/deploy COMPONENT deploy USE_SOURCE_PERMISSIONS
  PATTERN "systemd" EXCLUDE PATTERN "__pycache__" EXCLUDE)
install(FILES deploy/systemd/aerie.sysusers DESTINATION lib/sysusers.d RENAME aerie.conf COMPONENT deploy)
install(FILES deploy/systemd/aerie.tmpfiles DESTINATION lib/tmpfiles.d RENAME aerie.conf COMPONENT deploy)
install(FILES deploy/systemd/aerie.env DESTINATION share/aerie COMPONENT deploy)
# The unit names its program by the whole path, which is known when the tree is installed.
install(CODE "
  set(AERIE_PREFIX \"\${CMAKE_INSTALL_PREFIX}\")
  configure_file(${CMAKE_SOURCE_DIR}/deploy/systemd/aerie.service.in
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/systemd/system/aerie.service\" @ONLY)
  message(STATUS \"Installing: \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/systemd/system/aerie.service\")"
  COMPONENT deploy)
