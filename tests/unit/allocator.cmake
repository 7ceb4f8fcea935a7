if(NOT TARGET vramtrace_allocator)
  add_subdirectory(${PROJECT_SOURCE_DIR}/analyzer/allocator ${PROJECT_BINARY_DIR}/analyzer/allocator)
endif()
vramtrace_unit_test(allocator
  SOURCES
    allocator_golden_test.cpp
    allocator_invariants_test.cpp
    allocator_memory_test.cpp
    allocator_options_test.cpp
    allocator_pools_test.cpp
    allocator_settings_test.cpp
    allocator_streams_test.cpp
  LIBRARIES vramtrace_allocator)
