vramtrace_unit_test(estimate
  SOURCES
    ${CMAKE_CURRENT_SOURCE_DIR}/estimate_claims_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/estimate_config_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/estimate_families_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/estimate_files.h
    ${CMAKE_CURRENT_SOURCE_DIR}/estimate_phases_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/estimate_safetensors_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/estimate_states_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/estimate_techniques_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/estimate_text_test.cpp
  LIBRARIES vramtrace_estimate)
vramtrace_unit_test(estimate_command
  SOURCES
    ${CMAKE_CURRENT_SOURCE_DIR}/estimate_command_test.cpp
  LIBRARIES vramtrace_cli)
