if(NOT TARGET vramtrace_test_support)
  add_subdirectory(${PROJECT_SOURCE_DIR}/tests/support ${PROJECT_BINARY_DIR}/tests/support)
endif()
vramtrace_unit_test(diagnose
  SOURCES diagnose_rows_test.cpp
  LIBRARIES vramtrace_diagnose vramtrace_test_support)
