vramtrace_unit_test(fit
  SOURCES
    ${CMAKE_CURRENT_SOURCE_DIR}/fit_bands_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/fit_placeholder_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/fit_reductions_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/fit_search_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/fit_streams.h
    ${CMAKE_CURRENT_SOURCE_DIR}/fit_values_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/fit_verify_test.cpp
  LIBRARIES vramtrace_fit)
