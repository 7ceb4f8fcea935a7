#include "preload/simulator/cudart/symbols.h"

#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/memory.h"
#include "preload/simulator/cudart/runtime.h"

namespace vramtrace::simulator::runtime {
namespace {

struct Symbol {
  size_t bytes = 0;
  std::map<int, void*> addresses;  // device -> address
};

struct Symbols {
  std::mutex mutex;
  std::vector<std::pair<const void*, size_t>> registered;  // indexed at the first question
  std::unordered_map<const void*, Symbol> index;
};

Symbols& TheSymbols() {
  static auto* symbols = new Symbols;
  return *symbols;
}

// Address and size checked for an access of `bytes` at `offset`.
Status Locate(const void* host, size_t bytes, size_t offset, void** address) {
  size_t size = 0;
  Status status = FindSymbol(host, address, &size);
  if (status != Status::kOk) return status;
  if (offset > size || bytes > size - offset) return Status::kInvalidValue;
  *address = static_cast<char*>(*address) + offset;
  return Status::kOk;
}

}  // namespace

void RegisterSymbol(const void* host, const char* /*name*/, size_t bytes) {
  Symbols& symbols = TheSymbols();
  std::lock_guard lock(symbols.mutex);
  symbols.registered.emplace_back(host, bytes);
}

Status FindSymbol(const void* host, void** address, size_t* bytes) {
  Symbols& symbols = TheSymbols();
  std::lock_guard lock(symbols.mutex);
  for (auto [key, size] : symbols.registered) symbols.index[key].bytes = size;
  symbols.registered.clear();
  auto symbol = symbols.index.find(host);
  if (symbol == symbols.index.end()) return Status::kNotFound;
  void*& place = symbol->second.addresses[CurrentDevice()];
  if (place == nullptr) {
    Status status = AllocateModuleMemory(CurrentDevice(), symbol->second.bytes, &place);
    if (status != Status::kOk) return status;
  }
  *address = place;
  *bytes = symbol->second.bytes;
  return Status::kOk;
}

namespace {

cudaError_t SymbolResult(Status status) {
  return status == Status::kNotFound ? Fail(cudaErrorInvalidSymbol) : Result(status);
}

cudaError_t CopySymbol(void* outside, const void* symbol, size_t bytes, size_t offset, bool to_symbol) {
  void* address = nullptr;
  Status status = Locate(symbol, bytes, offset, &address);
  if (status != Status::kOk) return SymbolResult(status);
  return Result(to_symbol ? Copy(address, outside, bytes) : Copy(outside, address, bytes));
}

}  // namespace
}  // namespace vramtrace::simulator::runtime

using namespace vramtrace::simulator::runtime;

extern "C" {

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  size_t bytes = 0;
  return SymbolResult(FindSymbol(symbol, address, &bytes));
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  void* address = nullptr;
  return SymbolResult(FindSymbol(symbol, &address, bytes));
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t bytes, size_t offset,
                               cudaMemcpyKind /*kind*/) {
  return CopySymbol(const_cast<void*>(source), symbol, bytes, offset, true);
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t bytes, size_t offset,
                                    cudaMemcpyKind /*kind*/, cudaStream_t /*stream*/) {
  return CopySymbol(const_cast<void*>(source), symbol, bytes, offset, true);
}

cudaError_t cudaMemcpyFromSymbol(void* destination, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind /*kind*/) {
  return CopySymbol(destination, symbol, bytes, offset, false);
}

cudaError_t cudaMemcpyFromSymbolAsync(void* destination, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind /*kind*/, cudaStream_t /*stream*/) {
  return CopySymbol(destination, symbol, bytes, offset, false);
}

}  // extern "C"
