# cuDNN's and cuBLASLt's hand-written parts are linked in, to reach what they do not export; cuBLAS is
# opened as a program would, because its multiplications are generated.
if(TARGET vramtrace_sim_cudnn)
  vramtrace_unit_test(simulator_libs
    SOURCES
      ${CMAKE_CURRENT_LIST_DIR}/simulator_libs_cublas_test.cpp
      ${CMAKE_CURRENT_LIST_DIR}/simulator_libs_cublaslt_test.cpp
      ${CMAKE_CURRENT_LIST_DIR}/simulator_libs_cudnn_backend_test.cpp
      ${CMAKE_CURRENT_LIST_DIR}/simulator_libs_cudnn_test.cpp
      ${CMAKE_CURRENT_LIST_DIR}/simulator_libs_nccl_test.cpp
      ${CMAKE_CURRENT_LIST_DIR}/simulator_libs_reduction_test.cpp
    LIBRARIES vramtrace_sim_cudnn_objects vramtrace_sim_cublaslt13_objects vramtrace_sim_nccl_objects
              vramtrace_sim_core vramtrace_cuda13 ${CMAKE_DL_LIBS})
  add_dependencies(unit_simulator_libs vramtrace_sim_cublas13)
  target_compile_definitions(unit_simulator_libs PRIVATE VRAMTRACE_SIM_CUBLAS="$<TARGET_FILE:vramtrace_sim_cublas13>")
endif()
