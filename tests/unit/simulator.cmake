if(TARGET vramtrace_sim_core)
  set(core ${PROJECT_SOURCE_DIR}/preload/simulator/core)
  vramtrace_unit_test(simulator
    SOURCES
      simulator_contents_test.cpp
      simulator_devices_test.cpp
      simulator_driver_test.cpp
      simulator_faults_test.cpp
      simulator_graphs_test.cpp
      simulator_host_memory_test.cpp
      simulator_kernels_test.cpp
      simulator_memory_test.cpp
      simulator_nvml_test.cpp
      simulator_pools_test.cpp
      simulator_report_test.cpp
      simulator_runtime_test.cpp
      simulator_stored_bytes_test.cpp
      simulator_streams_test.cpp
      simulator_value_rules_test.cpp
      simulator_values_test.cpp
      simulator_virtual_memory_test.cpp
      ${core}/stored_bytes.cpp
      ${PROJECT_SOURCE_DIR}/preload/simulator/cudart/value_rules.cpp
    LIBRARIES vramtrace_sim_core vramtrace_catalogue vramtrace_cuda13 ${CMAKE_DL_LIBS})
  target_compile_definitions(unit_simulator PRIVATE
    VRAMTRACE_SIMULATOR_FOLDER="${CMAKE_BINARY_DIR}/lib/vramtrace/simulator")
  add_dependencies(unit_simulator vramtrace_sim_cuda vramtrace_sim_cudart13 vramtrace_sim_nvml)
endif()
