#pragma once
// The interned tables and the chunks that they are written to. Everything that names a thing once and is
// referred to by id afterwards goes through here, and labels, modules and facts about the process with them.
//
// One mutex guards the tables; what is known already is found without it. Lock order: the mutex of Tables
// before that of trace::ChunkFile; neither is held while the loader's lock is taken (dl_iterate_phdr) or
// while anything of the program runs.
//
// Before the file is open packets are kept in memory, up to kMaxUnfiledBytes: modules are named while the
// model is built, often long before the first CUDA call, and a program that never makes one must leave no
// file.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>

#include "preload/recorder/record/binaries.h"
#include "preload/recorder/record/id_table.h"
#include "preload/recorder/record/recorder.h"
#include "preload/trace/chunk_writer.h"

namespace vramtrace::record {

// CLOCK_MONOTONIC.
[[nodiscard]] uint64_t NowNs() noexcept;

class Tables {
 public:
  struct Settings {
    uint64_t chunk_bytes = 0;
    uint64_t memory_bytes = 0;  // for all tables together
    uint64_t file_id = 0;
    std::atomic<uint64_t>* sequence = nullptr;  // the process-wide counter of events
  };

  constexpr Tables() = default;

  void Configure(const Settings& settings) noexcept;

  // From here on packets go to `file`; those kept so far are moved there.
  [[nodiscard]] trace::FileStatus Attach(trace::ChunkFile* file, uint32_t process_id) noexcept;

  // Id of a Stack, 0 when there are no frames or the tables are full. Without a lock when it is known.
  [[nodiscard]] uint32_t Stack(const CapturedStack& stack) noexcept;

  // Id of a String. `Text` looks at the characters; `Name` at the address of a text that lives as long as the
  // process, and is the faster one. 0 for nullptr and "".
  [[nodiscard]] uint32_t Text(std::string_view text) noexcept;
  [[nodiscard]] uint32_t Name(const char* name) noexcept;

  // Id of the String with the file name of the library that an address of code lies in.
  [[nodiscard]] uint32_t CallerName(const void* pc) noexcept;

  // A packet that is no event.
  template <typename Packet>
  bool Write(const Packet& packet) noexcept {
    const std::lock_guard lock(mutex_);
    return WriteLocked(packet, false);
  }
  // A packet that takes a place in the sequence of events.
  template <typename Packet>
  bool WriteEvent(const Packet& packet) noexcept {
    const std::lock_guard lock(mutex_);
    return WriteLocked(packet, true);
  }

  // Writes the name of a module, unless it is the one written last for its address.
  void NameModule(uint64_t object, uint64_t parent, std::string_view path,
                  std::string_view class_name) noexcept;

  // The last packets, into the room that was kept for them; then the chunk is sealed.
  void Finish(std::span<const trace::LossPacket> losses, const trace::TrailerPacket* trailer) noexcept;
  // The same without sealing: recording stops, the process goes on.
  void NoteLoss(const trace::LossPacket& loss) noexcept;

  // Events whose stack was left out because a table was full.
  [[nodiscard]] uint64_t TableFullCount() const noexcept {
    return table_full_.load(std::memory_order_relaxed);
  }
  // Packets that came before the file was open and found the memory for them full.
  [[nodiscard]] uint64_t UnkeptCount() const noexcept { return unkept_.load(std::memory_order_relaxed); }
  // kOk until a chunk could not be had or written.
  [[nodiscard]] trace::FileStatus Failure() const noexcept {
    return failure_.load(std::memory_order_relaxed);
  }

  void LockForFork() noexcept { mutex_.lock(); }
  void UnlockAfterFork() noexcept { mutex_.unlock(); }

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;
    uint32_t binary;  // Binary id
    uint32_t path;    // String id
  };
  static constexpr size_t kMaxRanges = 4096;
  static constexpr uint64_t kMaxUnfiledBytes = 16 * 1024 * 1024;
  static constexpr size_t kMaxUnfiledChunks = kMaxUnfiledBytes / (64 * 1024);
  // A table chunk keeps this much free for the Loss packets and the Trailer, so that a full disk cannot
  // prevent them: six reasons with a sentence each.
  static constexpr size_t kKeptForEnd = 4096;
  static constexpr size_t kScratchBytes = 64 * 1024;

  template <typename Packet>
  bool WriteLocked(const Packet& packet, bool is_event) noexcept;
  [[nodiscard]] bool Roll(uint64_t sequence, uint64_t time_ns) noexcept;
  [[nodiscard]] bool OpenChunk(uint64_t sequence, uint64_t time_ns) noexcept;

  [[nodiscard]] uint32_t NewStack(const CapturedStack& stack, const Key& key, uint64_t removed) noexcept;
  // Writes the packet of a new id, then lets the id be found: never the other way round, or another thread's
  // event could name what a killed process has not written. 0 when the table is full or the packet could not
  // be written.
  template <typename Packet>
  [[nodiscard]] uint32_t DefineLocked(IdTable* table, const Key& key, Packet packet,
                                      uint32_t* last_id) noexcept;
  // Lets an id be found by another key too. False when the table is full.
  [[nodiscard]] bool AliasLocked(IdTable* table, const Key& key, uint32_t id) noexcept;
  [[nodiscard]] uint32_t TextLocked(std::string_view text) noexcept;
  [[nodiscard]] uint32_t CodeLocked(const void* code, uint64_t fingerprint) noexcept;
  [[nodiscard]] uint32_t PythonFrameLocked(const stacks::PythonFrame& frame) noexcept;
  [[nodiscard]] uint32_t NativeFrameLocked(const void* pc, uint64_t removed) noexcept;
  [[nodiscard]] uint32_t PushLocked(uint32_t parent, uint32_t frame) noexcept;
  void RefreshBinaries() noexcept;
  void MergeLocked(const BinarySnapshot& snapshot) noexcept;
  [[nodiscard]] const Range* FindRange(uint64_t pc) const noexcept;

  std::mutex mutex_;
  Settings settings_;
  MemoryBudget budget_;
  std::atomic<trace::FileStatus> failure_{trace::FileStatus::kOk};
  std::atomic<uint64_t> table_full_{0};
  std::atomic<uint64_t> unkept_{0};

  trace::ChunkFile* file_ = nullptr;
  uint32_t process_id_ = 0;
  trace::ChunkWriter writer_;
  trace::ChunkWriter unfiled_[kMaxUnfiledChunks];
  size_t unfiled_count_ = 0;

  IdTable captures_;    // a whole captured stack -> Stack
  IdTable names_;       // address of an immortal text -> String
  IdTable callers_;     // address of code -> String
  IdTable texts_;       // -> String
  IdTable codes_;       // -> Code
  IdTable raw_frames_;  // as captured -> Frame
  IdTable frames_;      // as written -> Frame
  IdTable stacks_;      // parent and frame -> Stack
  IdTable binaries_;    // -> Binary
  IdTable modules_;     // object -> digest of its description
  uint32_t last_text_ = 0;
  uint32_t last_code_ = 0;
  uint32_t last_frame_ = 0;
  uint32_t last_stack_ = 0;
  uint32_t last_binary_ = 0;

  LoaderCounters ranges_as_of_;
  size_t range_count_ = 0;
  Range ranges_[kMaxRanges] = {};  // by begin
  stacks::CodeText code_text_ = {};
  std::byte scratch_[kScratchBytes] = {};
};

}  // namespace vramtrace::record
