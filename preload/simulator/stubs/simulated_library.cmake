# vramtrace_simulated_library(TARGET <target>
#   SONAME libcublas.so.13        what programs ask the dynamic linker for
#   OUTPUT_NAME sim-cublas.so     the file; must not contain "libcudart.so" (README.md says why)
#   VERSION_NODE libcublas.so.13  symbol version of every export; leave out for none
#   EXPORTS exports.txt ...    names, see export_list.py
#   REFUSAL CUBLAS_STATUS_NOT_SUPPORTED   what a stub answers: a constant of REFUSAL_HEADER, or a number
#   REFUSAL_HEADER cublas_v2.h
#   HEADERS cublas_v2.h ...       headers that declare the library's functions (for exports.py)
#   PREFIX cublas                 what its names begin with (a regular expression; for exports.py)
#   SOURCES ...                   functions written by hand; C linkage, default visibility. VRAMTRACE_SIM_SONAME
#                                 is the soname in them
#   LIBRARIES ...                 further link libraries
#   CUDA 13)                      the CUDA major whose headers it is built against; default: the newest
#
# Makes the shared library <target> in VRAMTRACE_SIMULATOR_OUTPUT, and <target>_objects for unit tests of the
# hand-written part. Its manifest (what is written by hand, what refuses) lies in VRAMTRACE_SIMULATOR_MANIFESTS.
set(VRAMTRACE_SIMULATOR_OUTPUT "${CMAKE_BINARY_DIR}/lib/vramtrace/simulator")
set(VRAMTRACE_SIMULATOR_MANIFESTS "${CMAKE_BINARY_DIR}/lib/vramtrace/simulator-manifests")
set(VRAMTRACE_STUBS_FOLDER "${CMAKE_CURRENT_LIST_DIR}")
find_package(Python3 3.8 REQUIRED COMPONENTS Interpreter)

function(vramtrace_simulated_library)
  cmake_parse_arguments(SIM "" "TARGET;SONAME;OUTPUT_NAME;VERSION_NODE;REFUSAL;REFUSAL_HEADER;PREFIX;CUDA"
                        "EXPORTS;SOURCES;LIBRARIES;HEADERS" ${ARGN})
  if(SIM_OUTPUT_NAME MATCHES "libcudart\\.so")
    message(FATAL_ERROR "${SIM_TARGET}: a file name with libcudart.so makes PyTorch load NVIDIA's libraries.")
  endif()
  set(headers vramtrace_cuda${SIM_CUDA})
  list(TRANSFORM SIM_EXPORTS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")

  set(objects "")
  set(interfaces vramtrace_options ${headers} vramtrace_sim_core ${SIM_LIBRARIES})
  if(SIM_SOURCES)
    add_library(${SIM_TARGET}_objects OBJECT ${SIM_SOURCES})
    target_link_libraries(${SIM_TARGET}_objects PUBLIC ${interfaces})
    target_compile_definitions(${SIM_TARGET}_objects PRIVATE VRAMTRACE_SIM_SONAME="${SIM_SONAME}")
    # The version script decides what leaves the library; NVIDIA's headers set no visibility of their own.
    set_target_properties(${SIM_TARGET}_objects PROPERTIES CXX_VISIBILITY_PRESET default)
    set(objects $<TARGET_OBJECTS:${SIM_TARGET}_objects>)
  endif()

  set(generated "${CMAKE_CURRENT_BINARY_DIR}/${SIM_TARGET}")
  set(manifest "${VRAMTRACE_SIMULATOR_MANIFESTS}/${SIM_TARGET}.json")
  list(JOIN SIM_EXPORTS "\", \"" exports)
  list(JOIN SIM_HEADERS "\", \"" declared)
  string(REPLACE "\\" "\\\\" prefix "${SIM_PREFIX}")
  file(GENERATE OUTPUT "${generated}.json" CONTENT
"{\"target\": \"${SIM_TARGET}\", \"soname\": \"${SIM_SONAME}\", \"node\": \"${SIM_VERSION_NODE}\",
 \"file\": \"${VRAMTRACE_SIMULATOR_OUTPUT}/${SIM_OUTPUT_NAME}\", \"exports\": [\"${exports}\"],
 \"refusal\": \"${SIM_REFUSAL}\", \"header\": \"${SIM_REFUSAL_HEADER}\", \"headers\": [\"${declared}\"],
 \"prefix\": \"${prefix}\", \"include\": \"$<JOIN:$<TARGET_PROPERTY:${headers},INTERFACE_INCLUDE_DIRECTORIES>,:>\"}\n")
  file(MAKE_DIRECTORY "${VRAMTRACE_SIMULATOR_MANIFESTS}")
  add_custom_command(
    OUTPUT "${generated}_stubs.cpp" "${generated}.map" "${manifest}"
    COMMAND Python3::Interpreter -B "${VRAMTRACE_STUBS_FOLDER}/generate.py" --nm "${CMAKE_NM}"
            --description "${generated}.json" --stubs "${generated}_stubs.cpp"
            --version-script "${generated}.map" --manifest "${manifest}" ${objects}
    DEPENDS "${VRAMTRACE_STUBS_FOLDER}/generate.py" "${VRAMTRACE_STUBS_FOLDER}/export_list.py" "${generated}.json"
            ${SIM_EXPORTS} ${objects}
    COMMENT "Stubs of ${SIM_SONAME}" COMMAND_EXPAND_LISTS VERBATIM)

  add_library(${SIM_TARGET} SHARED "${generated}_stubs.cpp" ${objects})
  if(VRAMTRACE_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # A stub takes whatever its function is declared with.
    set_source_files_properties("${generated}_stubs.cpp" PROPERTIES COMPILE_OPTIONS -fno-sanitize=function)
  endif()
  target_link_libraries(${SIM_TARGET} PRIVATE ${interfaces})
  target_link_options(${SIM_TARGET} PRIVATE "LINKER:-soname,${SIM_SONAME}" "LINKER:--version-script=${generated}.map"
                      "LINKER:--no-undefined-version" "LINKER:--exclude-libs,ALL")
  # A sanitizer's run time is in the program: its names stay undefined here, and it must see every new and delete.
  if(NOT VRAMTRACE_SANITIZE)
    target_link_options(${SIM_TARGET} PRIVATE -static-libstdc++ -static-libgcc "LINKER:-z,defs")
  endif()
  if(SIM_SOURCES)
    vramtrace_old_glibc(${SIM_TARGET})
  endif()
  set_property(TARGET ${SIM_TARGET} APPEND PROPERTY LINK_DEPENDS "${generated}.map")
  get_filename_component(name "${SIM_OUTPUT_NAME}" NAME)
  set_target_properties(${SIM_TARGET} PROPERTIES PREFIX "" OUTPUT_NAME "${name}" SUFFIX "" NO_SONAME ON
                        LINKER_LANGUAGE CXX CXX_VISIBILITY_PRESET default
                        LIBRARY_OUTPUT_DIRECTORY "${VRAMTRACE_SIMULATOR_OUTPUT}"
                        BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
  install(TARGETS ${SIM_TARGET} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/vramtrace/simulator")
  set_property(GLOBAL APPEND PROPERTY VRAMTRACE_SIMULATED_LIBRARIES ${SIM_TARGET})
endfunction()
