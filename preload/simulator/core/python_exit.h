#pragma once
// A Python program may end while a thread of PyTorch's autograd engine still finishes its last task. That
// thread then asks for the GIL of an interpreter that is going down, CPython ends it by pthread_exit, and
// unwinding through a noexcept function aborts the process. On a card the threads have long been idle by
// then; instant kernels make the race likely. So the interpreter waits at exit until they are idle.

namespace vramtrace::simulator {

// Asks the interpreter of this process, if there is one, to call the wait from `atexit`. Needs no GIL.
void RegisterPythonExit();

// Returns when every autograd thread has been idle for a moment, or after two seconds.
void WaitForAutogradThreads();

}  // namespace vramtrace::simulator
