vramtrace_unit_test(doctor
  SOURCES doctor_checks_test.cpp
  LIBRARIES vramtrace_doctor)
