# kymo_find_bpf(): what building and loading BPF programs needs.
macro(kymo_find_bpf)
  find_package(PkgConfig REQUIRED)
  if(NOT TARGET PkgConfig::libbpf)
    pkg_check_modules(libbpf REQUIRED IMPORTED_TARGET GLOBAL libbpf>=1.0)
  endif()
  find_program(KYMO_CLANG NAMES clang clang-19 clang-14 REQUIRED)
  find_program(KYMO_BPFTOOL bpftool PATHS /usr/sbin REQUIRED)
endmacro()

# kymo_add_bpf(MODULE NAME HEADERS ...): builds NAME.bpf.c of this folder into the module's header FOLDER/NAME.skel.h. So the
# BPF program goes into the programs. `bpftool gen object` leaves out the debug information, which is half of it.
function(kymo_add_bpf module name)
  cmake_parse_arguments(arg "" "" "HEADERS" ${ARGN})
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
  set(object ${generated}/${name}.bpf.o)
  set(skeleton ${generated}/${folder}/${name}.skel.h)
  file(MAKE_DIRECTORY ${generated}/${folder})
  set(warnings -Wall)
  if(KYMO_WARNINGS_AS_ERRORS)
    list(APPEND warnings -Werror)
  endif()
  add_custom_command(OUTPUT ${skeleton}
    COMMAND ${KYMO_CLANG} -g -O2 ${warnings} -mcpu=v3 -target bpf -D__TARGET_ARCH_x86 -I/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}
      -c ${CMAKE_CURRENT_SOURCE_DIR}/${name}.bpf.c -o ${object}.compiled
    COMMAND ${KYMO_BPFTOOL} gen object ${object} ${object}.compiled
    COMMAND ${KYMO_BPFTOOL} gen skeleton ${object} name ${name}_bpf > ${skeleton}
    DEPENDS ${name}.bpf.c ${arg_HEADERS} VERBATIM
    COMMENT "Building the BPF program ${name}")
  target_sources(${module} PRIVATE ${skeleton})
  target_include_directories(${module} SYSTEM PRIVATE ${generated})
  add_custom_target(${module}_generated DEPENDS ${skeleton})
  add_dependencies(${module} ${module}_generated)
endfunction()
