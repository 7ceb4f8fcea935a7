if(NOT TARGET vramtrace_test_support)
  add_subdirectory(${PROJECT_SOURCE_DIR}/tests/support ${PROJECT_BINARY_DIR}/tests/support)
endif()
if(TARGET vramtrace_sim_nvml)
  vramtrace_unit_test(watch
    SOURCES watch_machine_test.cpp watch_nvml_test.cpp watch_symptoms_test.cpp watch_trace_test.cpp
    LIBRARIES vramtrace_watch vramtrace_test_support vramtrace_catalogue ${CMAKE_DL_LIBS})
  target_compile_definitions(unit_watch PRIVATE
    VRAMTRACE_SIMULATOR_FOLDER="${CMAKE_BINARY_DIR}/lib/vramtrace/simulator")
  add_dependencies(unit_watch vramtrace_sim_nvml)
endif()
