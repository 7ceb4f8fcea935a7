#include "preload/recorder/record/tables.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace vramtrace::record {
namespace {

using trace::FileStatus;

uint64_t AddressOf(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// The key of a whole stack as it was captured. The fingerprints are part of it: the interpreter reuses the
// addresses of code objects; `removed` is, because the loader reuses those of libraries.
Key MakeCaptureKey(const CapturedStack& stack, uint64_t removed) {
  KeyMaker maker(static_cast<uint64_t>(KeyKind::kCapture) ^ static_cast<uint64_t>(stack.python_count) << 32 ^
                 static_cast<uint64_t>(stack.native_count) << 8);
  for (int i = 0; i < stack.python_count; ++i) {
    const stacks::PythonFrame& frame = stack.python[i];
    // Objects are aligned to 16 and lie below 2^47: the shift makes room for an offset of 21 bits.
    maker.Add(AddressOf(frame.code) << 17 ^ static_cast<uint32_t>(frame.byte_offset),
              stacks::CodeFingerprint(frame.code) ^ AddressOf(frame.module_object) << 17);
  }
  for (int i = 0; i < stack.native_count; i += 2) {
    maker.Add(AddressOf(stack.native[i]),
              i + 1 < stack.native_count ? AddressOf(stack.native[i + 1]) : removed);
  }
  if (stack.native_count > 0) maker.Add(removed, removed);
  return maker.Finish();
}

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

uint64_t NowNs() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(now.tv_nsec);
}

void Tables::Configure(const Settings& settings) noexcept {
  const std::lock_guard lock(mutex_);
  settings_ = settings;
  budget_.SetLimit(settings.memory_bytes);
}

// ------------------------------------------------------------------------------------------------ writing

bool Tables::OpenChunk(uint64_t sequence, uint64_t time_ns) noexcept {
  trace::ChunkMemory memory;
  if (file_ != nullptr) {
    if (const FileStatus status = file_->Allocate(&memory); status != FileStatus::kOk) {
      failure_.store(status, std::memory_order_relaxed);
      return false;
    }
  } else {
    memory.bytes = trace::MapUnfiledChunk(settings_.chunk_bytes);
    if (memory.bytes == nullptr) return false;
  }
  const trace::ChunkIdentity identity{.kind = trace::ChunkKind::kTables,
                                      .thread = 0,
                                      .process_id = process_id_,
                                      .chunk_bytes = settings_.chunk_bytes,
                                      .file_id = settings_.file_id,
                                      .base_time_ns = time_ns,
                                      .base_sequence = sequence == 0 ? 0 : sequence - 1,
                                      .base_address = 0};
  const FileStatus status = writer_.Open(memory, identity);
  if (status != FileStatus::kOk) failure_.store(status, std::memory_order_relaxed);
  return status == FileStatus::kOk;
}

// Another chunk. The one before is complete then.
bool Tables::Roll(uint64_t sequence, uint64_t time_ns) noexcept {
  if (!writer_.IsOpen()) return OpenChunk(sequence, time_ns);
  if (file_ == nullptr) {
    if (unfiled_count_ == std::min<size_t>(kMaxUnfiledChunks, kMaxUnfiledBytes / settings_.chunk_bytes)) {
      unkept_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    unfiled_[unfiled_count_++] = writer_;
    writer_ = {};
    return OpenChunk(sequence, time_ns);
  }
  // The new chunk comes first: where there is none, the old one takes the last packets.
  trace::ChunkWriter full = writer_;
  if (!OpenChunk(sequence, time_ns)) {
    writer_ = full;
    return false;
  }
  if (full.Seal() != FileStatus::kOk) failure_.store(FileStatus::kFailed, std::memory_order_relaxed);
  full.Close();
  return true;
}

template <typename Packet>
bool Tables::WriteLocked(const Packet& packet, bool is_event) noexcept {
  if (settings_.sequence == nullptr || failure_.load(std::memory_order_relaxed) != FileStatus::kOk)
    return false;
  const uint64_t time_ns = NowNs();
  const uint64_t sequence =
      is_event ? settings_.sequence->fetch_add(1, std::memory_order_relaxed) + 1 : uint64_t{0};
  // Without an event's number the base is that of the next event, which is not known yet: the counter will
  // do.
  const uint64_t base = is_event ? sequence : settings_.sequence->load(std::memory_order_relaxed) + 1;
  if (!writer_.IsOpen() && !Roll(base, time_ns)) return false;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const trace::PacketStamp stamp = writer_.Stamp(sequence, time_ns);
    const std::span<const std::byte> bytes = trace::EncodePacket(stamp, packet, scratch_);
    if (bytes.empty()) return false;
    if (bytes.size() + kKeptForEnd <= writer_.Room()) {
      const FileStatus status = writer_.Append(bytes, stamp);
      if (status != FileStatus::kOk) failure_.store(status, std::memory_order_relaxed);
      return status == FileStatus::kOk;
    }
    if (!Roll(base, time_ns)) return false;
  }
  return false;
}

#define VRAMTRACE_INSTANTIATE_WRITE(Message, number) \
  template bool Tables::WriteLocked(const trace::Message##Packet& packet, bool is_event) noexcept;
VRAMTRACE_TRACE_PACKETS(VRAMTRACE_INSTANTIATE_WRITE)
#undef VRAMTRACE_INSTANTIATE_WRITE

FileStatus Tables::Attach(trace::ChunkFile* file, uint32_t process_id) noexcept {
  const std::lock_guard lock(mutex_);
  process_id_ = process_id;
  const auto move = [file, process_id](trace::ChunkWriter* writer) {
    trace::ChunkMemory memory;
    const FileStatus status = file->Allocate(&memory);
    return status == FileStatus::kOk ? writer->MoveInto(memory, process_id) : status;
  };
  for (size_t i = 0; i < unfiled_count_; ++i) {
    FileStatus status = move(&unfiled_[i]);
    if (status == FileStatus::kOk) status = unfiled_[i].Seal();
    if (status != FileStatus::kOk) return status;
    unfiled_[i].Close();
  }
  unfiled_count_ = 0;
  if (writer_.IsOpen()) {
    if (const FileStatus status = move(&writer_); status != FileStatus::kOk) return status;
  }
  file_ = file;
  const uint64_t sequence = settings_.sequence->load(std::memory_order_relaxed) + 1;
  if (!writer_.IsOpen() && !OpenChunk(sequence, NowNs())) return failure_.load(std::memory_order_relaxed);
  return FileStatus::kOk;
}

void Tables::NameModule(uint64_t object, uint64_t parent, std::string_view path,
                        std::string_view class_name) noexcept {
  const Key path_key = MakeTextKey(path);
  const Key description =
      MakeKey(KeyKind::kModule, path_key.high, path_key.low, parent, MakeTextKey(class_name).low);
  const Key key = MakeKey(KeyKind::kModule, object);
  const auto digest = static_cast<uint32_t>(description.low) | 1;
  const std::lock_guard lock(mutex_);
  if (modules_.Find(key) == digest) return;
  const trace::ModulePacket packet{
      .object = object, .path = TextLocked(path), .class_name = TextLocked(class_name), .parent = parent};
  // With a full table the name is written again each time: more bytes, nothing wrong.
  if (WriteLocked(packet, true) && modules_.Reserve(&budget_)) modules_.Put(key, digest);
}

void Tables::NoteLoss(const trace::LossPacket& loss) noexcept {
  const std::lock_guard lock(mutex_);
  if (!writer_.IsOpen() || file_ == nullptr) return;
  const trace::PacketStamp stamp = writer_.Stamp(0, NowNs());
  const std::span<const std::byte> bytes = trace::EncodePacket(stamp, loss, scratch_);
  if (bytes.empty() || bytes.size() > writer_.Room()) return;
  [[maybe_unused]] const FileStatus status = writer_.Append(bytes, stamp);
}

void Tables::Finish(std::span<const trace::LossPacket> losses, const trace::TrailerPacket* trailer) noexcept {
  for (const trace::LossPacket& loss : losses) NoteLoss(loss);
  const std::lock_guard lock(mutex_);
  if (!writer_.IsOpen() || file_ == nullptr) return;
  if (trailer != nullptr) {
    const trace::PacketStamp stamp = writer_.Stamp(0, NowNs());
    const std::span<const std::byte> bytes = trace::EncodePacket(stamp, *trailer, scratch_);
    if (!bytes.empty() && bytes.size() <= writer_.Room()) {
      [[maybe_unused]] const FileStatus status = writer_.Append(bytes, stamp);
    }
  }
  [[maybe_unused]] const FileStatus sealed = writer_.Seal();
  // Nothing may follow the trailer.
  failure_.store(FileStatus::kFailed, std::memory_order_relaxed);
}

// ---------------------------------------------------------------------------------------------- interning

template <typename Packet>
uint32_t Tables::DefineLocked(IdTable* table, const Key& key, Packet packet, uint32_t* last_id) noexcept {
  packet.id = *last_id + 1;
  if (!table->Reserve(&budget_) || !WriteLocked(packet, false)) return 0;
  table->Put(key, packet.id);
  return *last_id = packet.id;
}

bool Tables::AliasLocked(IdTable* table, const Key& key, uint32_t id) noexcept {
  if (!table->Reserve(&budget_)) return false;
  table->Put(key, id);
  return true;
}

uint32_t Tables::TextLocked(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const Key key = MakeTextKey(text);
  if (const uint32_t known = texts_.Find(key); known != 0) return known;
  return DefineLocked(&texts_, key, trace::StringPacket{.id = 0, .text = text}, &last_text_);
}

uint32_t Tables::Text(std::string_view text) noexcept {
  if (text.empty()) return 0;
  if (const uint32_t known = texts_.Find(MakeTextKey(text)); known != 0) return known;
  const std::lock_guard lock(mutex_);
  return TextLocked(text);
}

uint32_t Tables::Name(const char* name) noexcept {
  if (name == nullptr) return 0;
  const Key key = MakeKey(KeyKind::kName, AddressOf(name));
  if (const uint32_t known = names_.Find(key); known != 0) return known;
  const std::lock_guard lock(mutex_);
  const uint32_t id = TextLocked(name);
  if (id != 0 && names_.Find(key) == 0) [[maybe_unused]]
    const bool kept = AliasLocked(&names_, key, id);
  return id;
}

uint32_t Tables::CodeLocked(const void* code, uint64_t fingerprint) noexcept {
  const Key key = MakeKey(KeyKind::kCode, AddressOf(code), fingerprint);
  if (const uint32_t known = codes_.Find(key); known != 0) return known;
  // An object that does not look like one still gets an id: its frames keep their places in the stacks.
  if (!stacks::DescribeCode(code, &code_text_)) code_text_ = {};
  const trace::CodePacket packet{.id = 0,
                                 .file = TextLocked(code_text_.file),
                                 .qualified_name = TextLocked(code_text_.qualified_name),
                                 .first_line = code_text_.first_line};
  return DefineLocked(&codes_, key, packet, &last_code_);
}

uint32_t Tables::PythonFrameLocked(const stacks::PythonFrame& frame) noexcept {
  const uint64_t fingerprint = stacks::CodeFingerprint(frame.code);
  const uint64_t object = AddressOf(frame.module_object);
  const Key raw = MakeKey(KeyKind::kRawFrame, AddressOf(frame.code), fingerprint, object,
                          static_cast<uint32_t>(frame.byte_offset));
  if (const uint32_t known = raw_frames_.Find(raw); known != 0) return known;
  const uint32_t code = CodeLocked(frame.code, fingerprint);
  if (code == 0) return 0;
  const uint32_t line = stacks::LineOfCode(frame.code, frame.byte_offset);
  // Several instructions of a line are one frame.
  const Key key = MakeKey(KeyKind::kFrame, code, line, object);
  uint32_t id = frames_.Find(key);
  if (id == 0) {
    const trace::FramePacket packet{.id = 0, .code = code, .line = line, .module_object = object};
    id = DefineLocked(&frames_, key, packet, &last_frame_);
  }
  return id != 0 && AliasLocked(&raw_frames_, raw, id) ? id : 0;
}

uint32_t Tables::NativeFrameLocked(const void* pc, uint64_t removed) noexcept {
  const Key raw = MakeKey(KeyKind::kRawFrame, AddressOf(pc), removed, UINT64_MAX);
  if (const uint32_t known = raw_frames_.Find(raw); known != 0) return known;
  const Range* const range = FindRange(AddressOf(pc) - 1);
  const uint32_t binary = range == nullptr ? 0 : range->binary;
  const Key key = MakeKey(KeyKind::kFrame, AddressOf(pc), binary, UINT64_MAX);
  uint32_t id = frames_.Find(key);
  if (id == 0) {
    const trace::FramePacket packet{.id = 0, .pc = AddressOf(pc), .binary = binary};
    id = DefineLocked(&frames_, key, packet, &last_frame_);
  }
  return id != 0 && AliasLocked(&raw_frames_, raw, id) ? id : 0;
}

uint32_t Tables::PushLocked(uint32_t parent, uint32_t frame) noexcept {
  const Key key = MakeKey(KeyKind::kStack, parent, frame);
  if (const uint32_t known = stacks_.Find(key); known != 0) return known;
  return DefineLocked(&stacks_, key, trace::StackPacket{.id = 0, .parent = parent, .frame = frame},
                      &last_stack_);
}

uint32_t Tables::NewStack(const CapturedStack& stack, const Key& key, uint64_t removed) noexcept {
  if (stack.native_count > 0) RefreshBinaries();
  const std::lock_guard lock(mutex_);
  if (const uint32_t known = captures_.Find(key); known != 0) return known;
  uint32_t id = 0;
  bool complete = true;
  const auto push = [this, &id, &complete](uint32_t frame) {
    if (complete && frame != 0) id = PushLocked(id, frame);
    complete = complete && frame != 0 && id != 0;
  };
  for (int i = stack.python_count - 1; i >= 0 && complete; --i) push(PythonFrameLocked(stack.python[i]));
  for (int i = stack.native_count - 1; i >= 0 && complete; --i)
    push(NativeFrameLocked(stack.native[i], removed));
  if (complete && AliasLocked(&captures_, key, id)) return id;
  // Half a stack would look like a whole one: none is better.
  table_full_.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

uint32_t Tables::Stack(const CapturedStack& stack) noexcept {
  if (stack.python_count == 0 && stack.native_count == 0) return 0;
  const uint64_t removed = stack.native_count > 0 ? GetLoaderCounters().removed : 0;
  const Key key = MakeCaptureKey(stack, removed);
  if (const uint32_t known = captures_.Find(key); known != 0) return known;
  return NewStack(stack, key, removed);
}

// ----------------------------------------------------------------------------------------------- binaries

void Tables::RefreshBinaries() noexcept {
  const LoaderCounters now = GetLoaderCounters();
  {
    const std::lock_guard lock(mutex_);
    if (now == ranges_as_of_) return;
  }
  const BinarySnapshot snapshot;
  const std::lock_guard lock(mutex_);
  MergeLocked(snapshot);
}

void Tables::MergeLocked(const BinarySnapshot& snapshot) noexcept {
  if (snapshot.Count() == 0) return;
  char executable[4096];
  const ssize_t length = readlink("/proc/self/exe", executable, sizeof(executable));
  const std::string_view executable_path(executable, length > 0 ? static_cast<size_t>(length) : 0);
  range_count_ = 0;
  for (size_t i = 0; i < snapshot.Count(); ++i) {
    const MappedBinary& binary = snapshot.At(i);
    const uint32_t path = TextLocked(binary.path.empty() ? executable_path : binary.path);
    const Key build = MakeTextKey(binary.BuildId());
    const Key key =
        MakeKey(KeyKind::kCaller, binary.begin ^ binary.end << 16, path, binary.load_bias, build.low);
    uint32_t id = binaries_.Find(key);
    if (id == 0) {
      const trace::BinaryPacket packet{.id = 0,
                                       .path = path,
                                       .build_id = binary.BuildId(),
                                       .load_bias = binary.load_bias,
                                       .begin = binary.begin,
                                       .end = binary.end};
      id = DefineLocked(&binaries_, key, packet, &last_binary_);
    }
    ranges_[range_count_++] = {binary.begin, binary.end, id,
                               TextLocked(FileName(binary.path.empty() ? executable_path : binary.path))};
  }
  std::sort(ranges_, ranges_ + range_count_,
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  ranges_as_of_ = snapshot.Counters();
}

// Callers pass the return address less one: the call may be a file's last instruction.
const Tables::Range* Tables::FindRange(uint64_t pc) const noexcept {
  const Range* const end = ranges_ + range_count_;
  const Range* const after = std::upper_bound(
      ranges_, end, pc, [](uint64_t value, const Range& range) { return value < range.begin; });
  if (after == ranges_) return nullptr;
  const Range* const range = after - 1;
  return pc < range->end ? range : nullptr;
}

uint32_t Tables::CallerName(const void* pc) noexcept {
  if (pc == nullptr) return 0;
  const Key key = MakeKey(KeyKind::kCaller, AddressOf(pc), GetLoaderCounters().removed);
  if (const uint32_t known = callers_.Find(key); known != 0) return known;
  RefreshBinaries();
  const std::lock_guard lock(mutex_);
  if (const uint32_t known = callers_.Find(key); known != 0) return known;
  const Range* const range = FindRange(AddressOf(pc) - 1);
  if (range == nullptr || range->path == 0) return 0;
  [[maybe_unused]] const bool kept = AliasLocked(&callers_, key, range->path);
  return range->path;
}

}  // namespace vramtrace::record
