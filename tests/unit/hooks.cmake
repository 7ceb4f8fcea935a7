if(VRAMTRACE_BUILD_PRELOAD)
  vramtrace_unit_test(hooks SOURCES hooks_module_watch_test.cpp
                      ${PROJECT_SOURCE_DIR}/preload/recorder/hooks/module_watch.cpp)
endif()
