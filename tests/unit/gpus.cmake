vramtrace_unit_test(gpus
  SOURCES
    ${CMAKE_CURRENT_SOURCE_DIR}/gpus_cost_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/gpus_prices_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/gpus_select_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/gpus_text_test.cpp
  LIBRARIES vramtrace_gpus)
