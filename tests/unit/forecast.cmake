if(NOT TARGET vramtrace_test_support)
  add_subdirectory(${PROJECT_SOURCE_DIR}/tests/support ${PROJECT_BINARY_DIR}/tests/support)
endif()
file(GLOB forecast_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/forecast_*_test.cpp)
vramtrace_unit_test(forecast
  SOURCES ${forecast_tests}
  LIBRARIES vramtrace_report vramtrace_test_support)
