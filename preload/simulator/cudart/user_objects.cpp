#include "preload/simulator/cudart/user_objects.h"

#include <map>
#include <mutex>
#include <set>

#include "preload/simulator/core/graphs.h"
#include "preload/simulator/cudart/runtime.h"

namespace vramtrace::simulator::runtime {
namespace {

struct UserObject {
  void* pointer = nullptr;
  cudaHostFn_t destroy = nullptr;
  unsigned references = 0;
};

struct Table {
  std::mutex mutex;
  std::set<UserObject*> objects;
  std::map<void*, std::map<UserObject*, unsigned>> owners;  // graph or executable -> references it holds
};

Table& TheTable() {
  static auto* table = new Table;
  return *table;
}

UserObject* Object(cudaUserObject_t handle) { return reinterpret_cast<UserObject*>(handle); }

// With the mutex held. The destructor must not run under it: returned for the caller to run.
UserObject* Drop(Table& table, UserObject* object, unsigned count) {
  object->references -= count < object->references ? count : object->references;
  if (object->references != 0) return nullptr;
  table.objects.erase(object);
  return object;
}

void Destroy(UserObject* object) {
  if (object == nullptr) return;
  object->destroy(object->pointer);
  delete object;
}

}  // namespace

void ShareUserObjects(void* graph, void* executable) {
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  auto owner = table.owners.find(graph);
  if (owner == table.owners.end()) return;
  for (auto [object, count] : owner->second) object->references += count;
  table.owners[executable] = owner->second;
}

void ReleaseUserObjects(void* graph_or_executable) {
  std::set<UserObject*> unused;
  Table& table = TheTable();
  {
    std::lock_guard lock(table.mutex);
    auto owner = table.owners.find(graph_or_executable);
    if (owner == table.owners.end()) return;
    for (auto [object, count] : owner->second) {
      if (UserObject* dropped = Drop(table, object, count)) unused.insert(dropped);
    }
    table.owners.erase(owner);
  }
  for (UserObject* object : unused) Destroy(object);
}

}  // namespace vramtrace::simulator::runtime

using namespace vramtrace::simulator;
using namespace vramtrace::simulator::runtime;

extern "C" {

cudaError_t cudaUserObjectCreate(cudaUserObject_t* handle, void* pointer, cudaHostFn_t destroy,
                                 unsigned references, unsigned /*flags*/) {
  if (destroy == nullptr || references == 0) return Result(Status::kInvalidValue);
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  auto* object = new UserObject{pointer, destroy, references};
  table.objects.insert(object);
  *handle = reinterpret_cast<cudaUserObject_t>(object);
  return cudaSuccess;
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t handle, unsigned count) {
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  if (table.objects.count(Object(handle)) == 0) return Result(Status::kInvalidHandle);
  Object(handle)->references += count;
  return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t handle, unsigned count) {
  Table& table = TheTable();
  UserObject* unused = nullptr;
  {
    std::lock_guard lock(table.mutex);
    if (table.objects.count(Object(handle)) == 0) return Result(Status::kInvalidHandle);
    unused = Drop(table, Object(handle), count);
  }
  Destroy(unused);
  return cudaSuccess;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t handle, unsigned count,
                                      unsigned flags) {
  if (FindGraph(graph) == nullptr) return Result(Status::kInvalidHandle);
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  if (table.objects.count(Object(handle)) == 0) return Result(Status::kInvalidHandle);
  if (flags != cudaGraphUserObjectMove) Object(handle)->references += count;
  table.owners[graph][Object(handle)] += count;
  return cudaSuccess;
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t handle, unsigned count) {
  Table& table = TheTable();
  UserObject* unused = nullptr;
  {
    std::lock_guard lock(table.mutex);
    auto owner = table.owners.find(graph);
    if (owner == table.owners.end()) return Result(Status::kInvalidHandle);
    auto held = owner->second.find(Object(handle));
    if (held == owner->second.end() || held->second < count) return Result(Status::kInvalidValue);
    held->second -= count;
    if (held->second == 0) owner->second.erase(held);
    unused = Drop(table, Object(handle), count);
  }
  Destroy(unused);
  return cudaSuccess;
}

}  // extern "C"
