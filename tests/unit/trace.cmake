vramtrace_unit_test(trace
  SOURCES
    ${CMAKE_CURRENT_SOURCE_DIR}/trace_reading.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/trace_chunk_file_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/trace_chunk_reader_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/trace_crc32c_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/trace_encoder_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/trace_text_test.cpp
  LIBRARIES vramtrace_trace vramtrace_proto)
