vramtrace_unit_test(record
  SOURCES
    ${CMAKE_CURRENT_SOURCE_DIR}/record_scenario.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/record_faults_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/record_id_table_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/record_lifecycle_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/record_mask_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/record_options_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/record_packets_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/trace_reading.cpp
  LIBRARIES vramtrace_record vramtrace_proto ${CMAKE_DL_LIBS})
