// libnvToolsExt, the NVTX of before version 3, which PyTorch's wheels were linked against up to 2.5. Without
// a tool attached the real library does nothing and says so by these answers; a range's level is negative
// then (nvToolsExt.h).

#include <cstdint>

namespace {

constexpr int kNoPushPopTracking = -2;  // NVTX_NO_PUSH_POP_TRACKING

}  // namespace

extern "C" {

void nvtxInitialize(const void*) {}
void nvtxMarkEx(const void*) {}
void nvtxMarkA(const char*) {}
void nvtxMarkW(const wchar_t*) {}
uint64_t nvtxRangeStartEx(const void*) { return 0; }
uint64_t nvtxRangeStartA(const char*) { return 0; }
uint64_t nvtxRangeStartW(const wchar_t*) { return 0; }
void nvtxRangeEnd(uint64_t) {}
int nvtxRangePushEx(const void*) { return kNoPushPopTracking; }
int nvtxRangePushA(const char*) { return kNoPushPopTracking; }
int nvtxRangePushW(const wchar_t*) { return kNoPushPopTracking; }
int nvtxRangePop() { return kNoPushPopTracking; }

}  // extern "C"
