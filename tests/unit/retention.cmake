vramtrace_unit_test(retention
  SOURCES
    ${CMAKE_CURRENT_SOURCE_DIR}/record_scenario.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/retention_net_effect_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/retention_record.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/retention_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/retention_workload.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/trace_reading.cpp
  LIBRARIES vramtrace_record vramtrace_timeline vramtrace_proto ${CMAKE_DL_LIBS})
