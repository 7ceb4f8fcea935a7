vramtrace_unit_test(fit
  SOURCES
    ${CMAKE_CURRENT_SOURCE_DIR}/fit_bands_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/fit_streams.h
  LIBRARIES vramtrace_forecast)
