#include "analyzer/doctor/native_probe.h"

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace vramtrace::doctor {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

void Say(ordered_json line) {
  std::fputs((line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n").c_str(), stdout);
  std::fflush(stdout);
}

// A library under any of its majors' names; nullptr where none is found.
void* Open(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return handle;
  }
  return nullptr;
}

struct Runtime {
#define VRAMTRACE_FUNCTION(name) decltype(&::name) name = nullptr;
#define VRAMTRACE_RUNTIME(X) \
  X(cudaGetDeviceCount)      \
  X(cudaSetDevice)           \
  X(cudaDeviceGetAttribute)  \
  X(cudaMemGetInfo)          \
  X(cudaRuntimeGetVersion)   \
  X(cudaEventCreate)         \
  X(cudaEventDestroy)        \
  X(cudaEventRecord)         \
  X(cudaEventSynchronize) X(cudaEventElapsedTime) X(cudaMemcpyAsync) X(cudaFree) X(cudaFreeHost)
  VRAMTRACE_RUNTIME(VRAMTRACE_FUNCTION)
  // Overloaded in the header.
  cudaError_t (*cudaMalloc)(void**, size_t) = nullptr;
  cudaError_t (*cudaHostAlloc)(void**, size_t, unsigned) = nullptr;
  const char* (*cudaGetErrorString)(cudaError_t) = nullptr;

  bool Find(void* library) {
    bool complete = true;
    const auto find = [&](auto* function, const char* name) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
      complete = complete && *function != nullptr;
    };
#define VRAMTRACE_FIND(name) find(&name, #name);
    VRAMTRACE_RUNTIME(VRAMTRACE_FIND)
    find(&cudaMalloc, "cudaMalloc");
    find(&cudaHostAlloc, "cudaHostAlloc");
    find(&cudaGetErrorString, "cudaGetErrorString");
    return complete;
  }
};

struct Blas {
  decltype(&::cublasCreate_v2) create = nullptr;
  decltype(&::cublasDestroy_v2) destroy = nullptr;
  // Overloaded in the header.
  cublasStatus_t (*multiply)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                             const void*, cudaDataType, int, const void*, cudaDataType, int, const void*,
                             void*, cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t) = nullptr;

  bool Find(void* library) {
    create = reinterpret_cast<decltype(create)>(dlsym(library, "cublasCreate_v2"));
    destroy = reinterpret_cast<decltype(destroy)>(dlsym(library, "cublasDestroy_v2"));
    multiply = reinterpret_cast<decltype(multiply)>(dlsym(library, "cublasGemmEx"));
    return create != nullptr && destroy != nullptr && multiply != nullptr;
  }
};

// Device memory for one measurement.
class Memory {
 public:
  Memory(const Runtime& runtime, size_t bytes, bool on_host = false) : runtime_(runtime), on_host_(on_host) {
    error_ = on_host ? runtime.cudaHostAlloc(&address_, bytes, 0) : runtime.cudaMalloc(&address_, bytes);
  }
  ~Memory() { (void)(on_host_ ? runtime_.cudaFreeHost(address_) : runtime_.cudaFree(address_)); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] void* get() const { return address_; }
  [[nodiscard]] cudaError_t error() const { return error_; }

 private:
  const Runtime& runtime_;
  bool on_host_;
  void* address_ = nullptr;
  cudaError_t error_;
};

class Probe {
 public:
  Probe(const Runtime& runtime, double seconds)
      : runtime_(runtime), until_(Clock::now() + Of(seconds)), round_(Of(std::min(2.0, seconds / 40))) {}

  void Card(int index, const Blas* blas, const std::string& no_blas) {
    index_ = index;
    if (runtime_.cudaSetDevice(index) != cudaSuccess) return;
    Describe();
    const auto multiply = [&](const char* kind, cudaDataType type, cublasComputeType_t compute,
                              size_t width) {
      if (blas == nullptr) return Not(kind, no_blas);
      Multiply(*blas, kind, type, compute, width);
    };
    multiply("fp32", CUDA_R_32F, CUBLAS_COMPUTE_32F, 4);
    multiply("tf32", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4);
    multiply("bf16", Attribute(cudaDevAttrComputeCapabilityMajor) >= 8 ? CUDA_R_16BF : CUDA_R_16F,
             CUBLAS_COMPUTE_32F, 2);
    Copy("bandwidth", std::min<size_t>(size_t{1} << 30, free_ / 8), false, false);
    Copy("host_to_device", size_t{256} << 20, true, false);
    Copy("device_to_host", size_t{256} << 20, false, true);
    Not("resnet50", "PyTorch is not installed");
  }

 private:
  int Attribute(cudaDeviceAttr which) const {
    int value = 0;
    (void)runtime_.cudaDeviceGetAttribute(&value, which, index_);
    return value;
  }

  void Describe() {
    size_t total = 0;
    if (const cudaError_t error = runtime_.cudaMemGetInfo(&free_, &total); error != cudaSuccess) {
      Say({{"what", "missing"}, {"why", runtime_.cudaGetErrorString(error)}});
      return;
    }
    char name[256] = {};
    std::string uuid;
    if (void* driver = Open({"libcuda.so.1"})) {
      auto get_name = reinterpret_cast<decltype(&::cuDeviceGetName)>(dlsym(driver, "cuDeviceGetName"));
      auto get_uuid = reinterpret_cast<CUresult (*)(CUuuid*, CUdevice)>(dlsym(driver, "cuDeviceGetUuid_v2"));
      CUuuid bytes{};
      if (get_name != nullptr) (void)get_name(name, sizeof name, index_);
      if (get_uuid != nullptr && get_uuid(&bytes, index_) == CUDA_SUCCESS) uuid = UuidText(bytes);
    }
    Say({{"what", "card"},
         {"index", index_},
         {"name", name},
         {"uuid", uuid},
         {"total", total},
         {"free", free_},
         {"multiprocessors", Attribute(cudaDevAttrMultiProcessorCount)},
         {"major", Attribute(cudaDevAttrComputeCapabilityMajor)},
         {"minor", Attribute(cudaDevAttrComputeCapabilityMinor)}});
  }

  static std::string UuidText(const CUuuid& bytes) {
    std::string text = "GPU-";
    for (int i = 0; i < 16; ++i) {
      text += fmt::format("{:02x}", static_cast<unsigned char>(bytes.bytes[i]));
      if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
    }
    return text;
  }

  void Not(const char* kind, const std::string& why) const {
    Say({{"what", "not"}, {"index", index_}, {"kind", kind}, {"why", why}});
  }

  // Seconds of one call: the best of a few rounds, by events. 0: the time is over, or a call failed, which
  // was said.
  double SecondsOf(const char* kind, const std::function<bool()>& work) {
    if (Clock::now() >= until_) {
      Not(kind, "the time was over: --seconds");
      return 0;
    }
    Say({{"what", "progress"}, {"text", fmt::format("card {}: {}", index_, kind)}});
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
    if (runtime_.cudaEventCreate(&begin) != cudaSuccess || runtime_.cudaEventCreate(&end) != cudaSuccess)
      return 0;
    double best = 0;
    const auto round_until = std::min(until_, Clock::now() + round_);
    bool fine = work();
    for (int round = 0; fine && round < 10; ++round) {
      (void)runtime_.cudaEventRecord(begin, nullptr);
      for (int i = 0; i < 3; ++i) fine = work() && fine;
      (void)runtime_.cudaEventRecord(end, nullptr);
      fine = fine && runtime_.cudaEventSynchronize(end) == cudaSuccess;
      float milliseconds = 0;
      fine = fine && runtime_.cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess;
      const double took = milliseconds / 3000.0;
      if (fine && (best == 0 || took < best)) best = took;
      if (Clock::now() >= round_until) break;
    }
    (void)runtime_.cudaEventDestroy(begin);
    (void)runtime_.cudaEventDestroy(end);
    if (!fine || best <= 0) {
      Not(kind, "a call failed");
      return 0;
    }
    return best;
  }

  void Result(const char* kind, double amount, double seconds) const {
    if (seconds > 0) Say({{"what", "rate"}, {"index", index_}, {"kind", kind}, {"value", amount / seconds}});
  }

  void Multiply(const Blas& blas, const char* kind, cudaDataType type, cublasComputeType_t compute,
                size_t width) {
    const int size = free_ > (size_t{4} << 30) ? 8192 : 2048;
    const size_t bytes = static_cast<size_t>(size) * static_cast<size_t>(size) * width;
    const Memory a(runtime_, bytes);
    const Memory b(runtime_, bytes);
    const Memory c(runtime_, bytes);
    cublasHandle_t handle = nullptr;
    if (a.error() != cudaSuccess || b.error() != cudaSuccess || c.error() != cudaSuccess)
      return Not(kind, "out of memory");
    if (blas.create(&handle) != CUBLAS_STATUS_SUCCESS) return Not(kind, "cublasCreate failed");
    const float one = 1;
    const float zero = 0;
    const double seconds = SecondsOf(kind, [&] {
      return blas.multiply(handle, CUBLAS_OP_N, CUBLAS_OP_N, size, size, size, &one, a.get(), type, size,
                           b.get(), type, size, &zero, c.get(), type, size, compute,
                           CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS;
    });
    (void)blas.destroy(handle);
    Result(kind, 2.0 * size * size * size, seconds);
  }

  void Copy(const char* kind, size_t bytes, bool from_host, bool to_host) {
    const Memory source(runtime_, bytes, from_host);
    const Memory target(runtime_, bytes, to_host);
    if (source.error() != cudaSuccess || target.error() != cudaSuccess) return Not(kind, "out of memory");
    const double seconds = SecondsOf(kind, [&] {
      return runtime_.cudaMemcpyAsync(target.get(), source.get(), bytes, cudaMemcpyDefault, nullptr) ==
             cudaSuccess;
    });
    // Within the card every byte is read and written.
    Result(kind, (from_host || to_host ? 1.0 : 2.0) * static_cast<double>(bytes), seconds);
  }

  static Clock::duration Of(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  const Runtime& runtime_;
  Clock::time_point until_;
  Clock::duration round_;  // of one measurement
  int index_ = 0;
  size_t free_ = 0;
};

}  // namespace

void RunNativeProbe(double seconds) {
  Runtime runtime;
  void* library = Open({"libcudart.so.13", "libcudart.so.12", "libcudart.so"});
  if (library == nullptr || !runtime.Find(library)) {
    return Say({{"what", "missing"},
                {"why", "neither PyTorch nor CUDA's runtime (libcudart.so) is installed here"}});
  }
  int count = 0;
  if (const cudaError_t error = runtime.cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    return Say({{"what", "missing"},
                {"why", fmt::format("CUDA finds no card: {}", runtime.cudaGetErrorString(error))}});
  }
  int version = 0;
  (void)runtime.cudaRuntimeGetVersion(&version);
  Say({{"what", "runtime"},
       {"by", "native"},
       {"cuda", fmt::format("{}.{}", version / 1000, version % 1000 / 10)}});
  Blas blas;
  void* blas_library = Open({"libcublas.so.13", "libcublas.so.12", "libcublas.so"});
  const bool has_blas = blas_library != nullptr && blas.Find(blas_library);
  Probe probe(runtime, seconds);
  for (int index = 0; index < count; ++index) {
    probe.Card(index, has_blas ? &blas : nullptr, "cuBLAS (libcublas.so) is not installed here");
  }
}

}  // namespace vramtrace::doctor
