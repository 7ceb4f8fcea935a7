#pragma once
// Objects of the program whose life a graph shares (cudaUserObjectCreate): the last reference runs its
// destructor. An executable keeps those of the graph it was made from.

namespace vramtrace::simulator::runtime {

void ShareUserObjects(void* graph, void* executable);
void ReleaseUserObjects(void* graph_or_executable);

}  // namespace vramtrace::simulator::runtime
