# aerie_proto_library: C++ from .proto files, generated into the build tree and never committed.

find_package(PkgConfig REQUIRED)
pkg_check_modules(AERIE_PROTOBUF REQUIRED IMPORTED_TARGET protobuf)
pkg_check_modules(AERIE_GRPC REQUIRED IMPORTED_TARGET grpc++)
find_program(AERIE_PROTOC protoc REQUIRED)
find_program(AERIE_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)

# aerie_proto_library(proto PROTOS a/v1/b.proto IMPORT_DIR dir [GRPC]) makes aerie_proto, alias aerie::proto. Includes
# read "a/v1/b.pb.h". GRPC adds "a/v1/b.grpc.pb.h" for files that define a service and links grpc++.
function(aerie_proto_library name)
  cmake_parse_arguments(ARG "GRPC" "IMPORT_DIR" "PROTOS" ${ARGN})
  set(out ${CMAKE_BINARY_DIR}/generated/${name})
  file(MAKE_DIRECTORY ${out})
  set(sources)
  foreach(proto ${ARG_PROTOS})
    string(REGEX REPLACE "[.]proto$" "" stem ${proto})
    set(files ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
    set(flags --cpp_out=${out})
    file(STRINGS ${ARG_IMPORT_DIR}/${proto} services REGEX "^service ")
    if(ARG_GRPC AND services)
      list(APPEND files ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h)
      list(APPEND flags --grpc_out=${out} --plugin=protoc-gen-grpc=${AERIE_GRPC_PLUGIN})
    endif()
    add_custom_command(OUTPUT ${files}
      COMMAND ${AERIE_PROTOC} -I${ARG_IMPORT_DIR} ${flags} ${ARG_IMPORT_DIR}/${proto}
      DEPENDS ${ARG_IMPORT_DIR}/${proto}
      COMMENT "protoc ${proto}"
      VERBATIM)
    list(APPEND sources ${files})
  endforeach()
  add_library(aerie_${name} STATIC ${sources})
  add_library(aerie::${name} ALIAS aerie_${name})
  # SYSTEM: our warnings are not for generated code.
  target_include_directories(aerie_${name} SYSTEM PUBLIC ${out})
  target_link_libraries(aerie_${name} PUBLIC PkgConfig::AERIE_PROTOBUF)
  if(ARG_GRPC)
    target_link_libraries(aerie_${name} PUBLIC PkgConfig::AERIE_GRPC)
  endif()
endfunction()
