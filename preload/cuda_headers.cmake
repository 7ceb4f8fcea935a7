# Targets vramtrace_cuda13 and vramtrace_cuda12 (INTERFACE): NVIDIA's headers of that major. An installed
# toolkit serves its own major; the other comes from script/fetch_cuda_headers.py. `vramtrace_cuda` is the
# newest there is. VRAMTRACE_CUDA_MAJORS: those there are, newest first.
find_package(CUDAToolkit QUIET)
set(VRAMTRACE_CUDA_HEADERS "${PROJECT_SOURCE_DIR}/build/cuda-headers" CACHE PATH
    "Where script/fetch_cuda_headers.py has put <major>/include")
foreach(major 12 13)
  set(folder "${VRAMTRACE_CUDA_HEADERS}/${major}/include")
  if(NOT EXISTS "${folder}/cuda_runtime_api.h")
    set(folder "")
    if(CUDAToolkit_FOUND AND CUDAToolkit_VERSION_MAJOR EQUAL major)
      set(folder "${CUDAToolkit_INCLUDE_DIRS}")
    endif()
  endif()
  if(folder)
    add_library(vramtrace_cuda${major} INTERFACE)
    target_include_directories(vramtrace_cuda${major} SYSTEM INTERFACE ${folder})
    set(VRAMTRACE_CUDA_INCLUDE_${major} "${folder}")
    list(PREPEND VRAMTRACE_CUDA_MAJORS ${major})
    set(newest ${major})
  endif()
endforeach()
if(NOT newest)
  message(FATAL_ERROR "No CUDA headers. Run script/bootstrap, which fetches them into "
          "${VRAMTRACE_CUDA_HEADERS}, or install the CUDA Toolkit.")
endif()
add_library(vramtrace_cuda ALIAS vramtrace_cuda${newest})
message(STATUS "CUDA headers: major ${newest} from ${VRAMTRACE_CUDA_INCLUDE_${newest}}")
