// What a program asks of the library itself. Handles are in handle.cpp, sizes in workspace.cpp; the sparse
// and refactoring parts refuse.

#include <cusolver_common.h>

extern "C" {

cusolverStatus_t cusolverGetVersion(int* version) {
  if (version == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
  *version = CUSOLVER_VERSION;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverGetProperty(libraryPropertyType type, int* value) {
  if (value == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
  switch (type) {
    case MAJOR_VERSION:
      *value = CUSOLVER_VER_MAJOR;
      return CUSOLVER_STATUS_SUCCESS;
    case MINOR_VERSION:
      *value = CUSOLVER_VER_MINOR;
      return CUSOLVER_STATUS_SUCCESS;
    case PATCH_LEVEL:
      *value = CUSOLVER_VER_PATCH;
      return CUSOLVER_STATUS_SUCCESS;
  }
  return CUSOLVER_STATUS_INVALID_VALUE;
}

}  // extern "C"
