// CUPTI is absent: kernels do not run, so there is no activity to report. NVIDIA's own library crashes on the
// simulated driver, and PyTorch needs one to load; with this one its profiler records the CPU side alone.

#include <cupti.h>

extern "C" {

CUptiResult cuptiGetVersion(uint32_t* version) {
  if (version == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  if (text == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS" : "CUPTI_ERROR_NOT_SUPPORTED (simulated device)";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char** text) {
  return cuptiGetResultString(result, text);
}

// Nothing was subscribed, so there is nothing left to finish.
CUptiResult cuptiFinalize() { return CUPTI_SUCCESS; }

}  // extern "C"
