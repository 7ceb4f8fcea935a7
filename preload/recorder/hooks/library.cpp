// Start of libvramtrace.so. The constructor opens nothing and starts nothing: outside of Python it makes one
// look-up, so that /bin/true under the preload costs no more than its mapping.

#include "preload/recorder/hooks/label_functions.h"

namespace {

__attribute__((constructor)) void Start() { vramtrace::hooks::StartPython(); }

}  // namespace
