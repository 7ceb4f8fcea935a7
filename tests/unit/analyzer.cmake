if(NOT TARGET vramtrace_test_support)
  add_subdirectory(${PROJECT_SOURCE_DIR}/tests/support ${PROJECT_BINARY_DIR}/tests/support)
endif()
vramtrace_unit_test(analyzer
  SOURCES
    analyzer_trace_file_test.cpp
    analyzer_event_stream_test.cpp
    analyzer_tables_test.cpp
    analyzer_stack_facts_test.cpp
    analyzer_address_map_test.cpp
    analyzer_cli_test.cpp
    analyzer_device_memory_test.cpp
    analyzer_forward_index_test.cpp
    analyzer_rules_test.cpp
    analyzer_identity_test.cpp
    analyzer_out_of_memory_test.cpp
    analyzer_report_test.cpp
    analyzer_run_test.cpp
    analyzer_text_test.cpp
    analyzer_json_test.cpp
    analyzer_diff_test.cpp
    analyzer_dump_test.cpp
    analyzer_hostile_test.cpp
    analyzer_instants_test.cpp
  LIBRARIES vramtrace_cli vramtrace_report vramtrace_test_support)
