if(VRAMTRACE_BUILD_PRELOAD)
  vramtrace_unit_test(stacks SOURCES stacks_internals_test.cpp stacks_hidden_code_test.cpp
                      LIBRARIES vramtrace_stacks)
endif()
