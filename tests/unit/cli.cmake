vramtrace_unit_test(cli
  SOURCES
    ${CMAKE_CURRENT_SOURCE_DIR}/cli_child_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/cli_environment_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/cli_files.h
    ${CMAKE_CURRENT_SOURCE_DIR}/cli_host_memory_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/cli_inspect_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/cli_installation_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/cli_overwrite_guard_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/cli_scratch_layer_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/cli_simulator_report_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/cli_subcommands_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/cli_traces_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/cli_trackers_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/cli_units_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/cli_verdict_test.cpp
  LIBRARIES vramtrace_cli)
