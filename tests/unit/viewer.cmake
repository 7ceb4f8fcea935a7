find_package(ZLIB REQUIRED)
if(NOT TARGET vramtrace_test_support)
  add_subdirectory(${PROJECT_SOURCE_DIR}/tests/support ${PROJECT_BINARY_DIR}/tests/support)
endif()
vramtrace_unit_test(viewer
  SOURCES
    viewer_data_file.cpp
    viewer_data_test.cpp
    viewer_page_test.cpp
    viewer_pages_test.cpp
    viewer_pictures_test.cpp
  LIBRARIES vramtrace_viewer_data vramtrace_test_support ZLIB::ZLIB)
target_compile_definitions(unit_viewer PRIVATE VRAMTRACE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
