vramtrace_unit_test(catalogue
  SOURCES catalogue_gpus_test.cpp catalogue_lookup_test.cpp catalogue_tables_test.cpp
  LIBRARIES vramtrace_catalogue)
