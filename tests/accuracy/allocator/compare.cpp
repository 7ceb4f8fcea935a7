// Runs a request stream on the allocator model and compares every answer with what the real allocator said.
//
//   allocator_compare VERSION TOTAL USED_ELSEWHERE SETTINGS_FILE FOLDER
//
// FOLDER holds stream.bin (stream.py), observations.bin, messages.txt and snapshots.bin (real_allocator.py);
// SETTINGS_FILE a line of PYTORCH_CUDA_ALLOC_CONF each, the first of which was in force from the start.
// Prints a JSON object; the exit status is 1 if anything differs.
#include <array>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/allocator/caching_allocator.h"

namespace {

using namespace vramtrace::allocator;  // NOLINT: this program is about nothing else

enum Kind : std::int64_t {
  kAllocate = 1,
  kFree,
  kRecordStream,
  kEmptyCache,
  kFraction,
  kBusy,
  kSettings,
  kCreatePool,
  kReleasePool,
  kSnapshot,
  kResetPeaks,
};

struct Operation {
  std::int64_t kind;
  std::int64_t handle;
  std::int64_t bytes;
  std::int64_t stream;
  std::int64_t pool;
};
static_assert(sizeof(Operation) == 40);

// What is compared, in the order of real_allocator.py. A figure that the release does not have is kAbsent.
constexpr std::array kFigures = {"address",
                                 "allocated",
                                 "reserved",
                                 "active",
                                 "requested",
                                 "inactive split",
                                 "inactive blocks",
                                 "segments",
                                 "allocations",
                                 "active blocks",
                                 "small allocated",
                                 "small reserved",
                                 "retries",
                                 "ooms",
                                 "synchronisations",
                                 "device allocs",
                                 "device frees",
                                 "oversize blocks",
                                 "oversize segments",
                                 "peak allocated",
                                 "peak reserved",
                                 "peak active",
                                 "rejections",
                                 "message",
                                 "range",
                                 "second range"};
constexpr std::size_t kMessage = 23;  // the line of messages.txt, from 1
constexpr std::size_t kRange = 24;    // where ranges were reserved, or 0; two columns
constexpr std::int64_t kAbsent = std::numeric_limits<std::int64_t>::min();
using Observation = std::array<std::int64_t, kFigures.size()>;

struct RealBlock {
  std::int64_t address;
  std::int64_t size;
  std::int64_t requested;
  std::int64_t state;  // 0 free, 1 allocated, 2 pending; requested is kAbsent where the release does not tell
};

class BusyStreams final : public StreamEvents {
 public:
  EventId Record(StreamId stream) override {
    const std::uint64_t id = next_++;
    streams_.emplace(id, stream);
    return EventId{id};
  }
  bool Ready(EventId event) override {
    const auto found = streams_.find(static_cast<std::uint64_t>(event));
    if (busy_.contains(found->second)) return false;
    streams_.erase(found);
    return true;
  }
  void Synchronize(EventId event) override { streams_.erase(static_cast<std::uint64_t>(event)); }
  void Set(StreamId stream, bool busy) {
    if (busy) {
      busy_.insert(stream);
    } else {
      busy_.erase(stream);
    }
  }

 private:
  std::uint64_t next_ = 0;
  std::unordered_map<std::uint64_t, StreamId> streams_;
  std::set<StreamId> busy_;
};

[[noreturn]] void Die(const std::string& text) {
  std::fprintf(stderr, "allocator_compare: %s\n", text.c_str());
  std::exit(3);
}

template <typename Record>
class Reader {
 public:
  explicit Reader(const std::string& path) : file_(path, std::ios::binary), path_(path) {
    if (!file_) Die("cannot open " + path);
  }
  bool Next(Record& record) {
    file_.read(reinterpret_cast<char*>(&record), sizeof record);
    if (file_.gcount() == 0) return false;
    if (file_.gcount() != sizeof record) Die(path_ + " ends inside a record");
    return true;
  }

 private:
  std::ifstream file_;
  std::string path_;
};

std::vector<std::string> Lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) Die("cannot open " + path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

Settings Parse(const std::string& text, const VersionRules& rules, const Settings& before) {
  auto parsed = ParseSettings(text, rules, before);
  if (const auto* error = std::get_if<SettingsError>(&parsed)) {
    Die("settings '" + text + "': " + error->option + ": expected " + error->expected);
  }
  return std::get<Settings>(parsed);
}

// PyTorch's message up to the advice, without what NVML says about processes.
std::string Figures(const std::string& message) {
  static const std::regex processes(
      "(Process [0-9]+ has [0-9.]+ [A-Za-z]+ memory in use\\. )*"
      "Including non-PyTorch memory, this process has [0-9.]+ [A-Za-z]+ memory in use\\. ");
  std::string text = std::regex_replace(message, processes, "");
  for (const char* last : {"is reserved by PyTorch but unallocated.", "reserved in total by PyTorch)"}) {
    const std::size_t end = text.find(last);
    if (end != std::string::npos) return text.substr(0, end + std::strlen(last));
  }
  return text;
}

class Comparison {
 public:
  Comparison(const VersionRules& rules, Bytes total, Bytes used_elsewhere, std::vector<std::string> settings,
             const std::string& folder)
      : rules_(rules),
        card_({.total = total, .used_elsewhere = used_elsewhere}),
        given_(card_),
        settings_texts_(std::move(settings)),
        settings_(Parse(settings_texts_.at(0), rules, {})),
        allocator_(settings_, rules, given_, events_),
        operations_(folder + "/stream.bin"),
        observations_(folder + "/observations.bin"),
        snapshots_(folder + "/snapshots.bin"),
        messages_(Lines(folder + "/messages.txt")) {}

  void Run() {
    Operation operation{};
    while (operations_.Next(operation)) {
      if (!observations_.Next(real_)) Die("fewer observations than operations");
      Apply(operation);
      Check(operation);
      ++count_;
    }
  }

  int Report() const {
    const Statistics& statistics = allocator_.statistics();
    std::printf("{\"operations\": %" PRId64 ", \"differences\": %" PRId64 ", \"ooms\": %" PRId64
                ", \"retries\": %" PRId64 ", \"snapshots\": %" PRId64 ", \"blocks_in_snapshots\": %" PRId64
                ", \"first\": \"%s\"}\n",
                count_, differences_, statistics.num_ooms + statistics.num_oom_rejections,
                statistics.num_alloc_retries, snapshot_count_, block_count_, first_.c_str());
    return differences_ == 0 ? 0 : 1;
  }

 private:
  void Apply(const Operation& operation) {
    ours_.fill(0);
    const StreamId stream{static_cast<std::uint64_t>(operation.stream)};
    const auto found = live_.find(operation.handle);
    switch (operation.kind) {
      case kAllocate:
        Allocate(operation, stream);
        break;
      case kFree:
        if (found == live_.end()) break;
        allocator_.Free(found->second);
        live_.erase(found);
        break;
      case kRecordStream:
        if (found != live_.end()) allocator_.RecordStream(found->second, stream);
        break;
      case kEmptyCache:
        allocator_.EmptyCache();
        break;
      case kFraction:
        allocator_.SetMemoryFraction(std::bit_cast<double>(operation.bytes));
        break;
      case kBusy:
        events_.Set(stream, operation.bytes != 0);
        break;
      case kSettings:
        settings_ = Parse(settings_texts_.at(static_cast<std::size_t>(operation.bytes)), rules_, settings_);
        allocator_.ChangeSettings(settings_);
        break;
      case kCreatePool:
        pools_[operation.pool] = allocator_.CreatePool(
            {.use_on_oom = (operation.bytes & 1) != 0, .no_split = (operation.bytes & 2) != 0});
        break;
      case kReleasePool:
        allocator_.ReleasePool(pools_.at(operation.pool));
        allocator_.EmptyCache(pools_.at(operation.pool));
        break;
      case kSnapshot:
        CompareSnapshot();
        break;
      case kResetPeaks:
        allocator_.ResetPeaks();
        break;
      default:
        Die("unknown operation " + std::to_string(operation.kind));
    }
  }

  void Allocate(const Operation& operation, StreamId stream) {
    // A new segment's first block is handed out at once, so its address is the segment's. Ranges of
    // expandable segments are told apart, as the request may fail after it reserved one.
    given_.Forget();
    const bool ranges = real_[kRange] != 0;
    for (const std::int64_t address : {ranges ? real_[kRange] : real_[0], real_[kRange + 1]}) {
      if (address != 0) given_.Give(static_cast<Address>(address));
    }
    const PoolId pool = operation.pool == 0 ? PoolId::kDefault : pools_.at(operation.pool);
    if (operation.pool != 0) allocator_.BeginPoolUse();
    const AllocationResult result = allocator_.Allocate(static_cast<Bytes>(operation.bytes), stream, pool);
    if (operation.pool != 0) allocator_.EndPoolUse();
    given_.Forget();
    if (const auto* allocation = std::get_if<Allocation>(&result)) {
      ours_[0] = static_cast<std::int64_t>(allocation->address);
      if (allocation->block != BlockId::kNone) live_[operation.handle] = allocation->block;
    } else if (const auto* failure = std::get_if<OutOfMemory>(&result)) {
      ours_[kMessage] = real_[kMessage] != 0 ? real_[kMessage] : 1;
      if (real_[kMessage] != 0) CompareMessage(*failure);
    } else {
      Die("no such pool");
    }
  }

  void CompareMessage(const OutOfMemory& failure) {
    const std::string& message = messages_.at(static_cast<std::size_t>(real_[kMessage] - 1));
    const std::string real = Figures(message);
    const std::string ours = Message(failure, rules_.message, 0, {});
    if (real != ours) Differ("message: real '" + real + "', model '" + ours + "'");
  }

  void CompareSnapshot() {
    std::map<std::int64_t, RealBlock> real = ReadSnapshot();
    block_count_ += static_cast<std::int64_t>(real.size());
    for (const SegmentView& segment : allocator_.Snapshot()) {
      for (const BlockView& view : segment.blocks) {
        const RealBlock ours{static_cast<std::int64_t>(view.address), static_cast<std::int64_t>(view.size),
                             static_cast<std::int64_t>(view.requested),
                             static_cast<std::int64_t>(view.state)};
        const auto same = real.find(ours.address);
        if (same == real.end() || !Same(same->second, ours)) {
          Differ("snapshot: the block at " + std::to_string(ours.address) + " is another one");
        } else {
          real.erase(same);
        }
      }
    }
    if (!real.empty()) Differ("snapshot: the model lacks " + std::to_string(real.size()) + " blocks");
    ++snapshot_count_;
  }

  std::map<std::int64_t, RealBlock> ReadSnapshot() {
    std::array<std::int64_t, 4> record{};
    if (!snapshots_.Next(record)) Die("fewer snapshots than asked for");
    std::map<std::int64_t, RealBlock> blocks;
    for (std::int64_t left = record[0]; left > 0; --left) {
      if (!snapshots_.Next(record)) Die("snapshots.bin ends inside a snapshot");
      blocks.emplace(record[0], RealBlock{record[0], record[1], record[2], record[3]});
    }
    return blocks;
  }

  static bool Same(const RealBlock& real, const RealBlock& ours) {
    return real.size == ours.size && real.state == ours.state &&
           (real.requested == kAbsent || real.requested == ours.requested);
  }

  void Check(const Operation& operation) {
    const Statistics& s = allocator_.statistics();
    const Observation now = {
        ours_[0],
        s.all.allocated_bytes.current,
        s.all.reserved_bytes.current,
        s.all.active_bytes.current,
        s.all.requested_bytes.current,
        s.all.inactive_split_bytes.current,
        s.all.inactive_split.current,
        s.all.segment.current,
        s.all.allocation.current,
        s.all.active.current,
        s.small_pool.allocated_bytes.current,
        s.small_pool.reserved_bytes.current,
        s.num_alloc_retries,
        s.num_ooms,
        s.num_sync_all_streams,
        s.num_device_alloc,
        s.num_device_free,
        s.oversize_allocations.current,
        s.oversize_segments.current,
        s.all.allocated_bytes.peak,
        s.all.reserved_bytes.peak,
        s.all.active_bytes.peak,
        s.num_oom_rejections,
        ours_[kMessage],
        real_[kRange],  // told, not compared
        real_[kRange + 1],
    };
    for (std::size_t i = 0; i < kFigures.size(); ++i) {
      if (real_[i] == kAbsent || real_[i] == now[i]) continue;
      Differ(std::string(kFigures[i]) + ": real " + std::to_string(real_[i]) + ", model " +
             std::to_string(now[i]) + " (kind " + std::to_string(operation.kind) + ", " +
             std::to_string(operation.bytes) + " bytes)");
    }
  }

  void Differ(const std::string& what) {
    ++differences_;
    if (first_.empty()) first_ = "operation " + std::to_string(count_) + ": " + what;
  }

  const VersionRules& rules_;
  CardMemory card_;
  GivenAddresses given_;
  BusyStreams events_;
  std::vector<std::string> settings_texts_;
  Settings settings_;
  CachingAllocator allocator_;
  Reader<Operation> operations_;
  Reader<Observation> observations_;
  Reader<std::array<std::int64_t, 4>> snapshots_;
  std::vector<std::string> messages_;

  Observation real_{};
  Observation ours_{};
  std::unordered_map<std::int64_t, BlockId> live_;
  std::map<std::int64_t, PoolId> pools_;
  std::int64_t count_ = 0;
  std::int64_t differences_ = 0;
  std::int64_t snapshot_count_ = 0;
  std::int64_t block_count_ = 0;
  std::string first_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 6) Die("usage: allocator_compare VERSION TOTAL USED_ELSEWHERE SETTINGS_FILE FOLDER");
  unsigned major = 0;
  unsigned minor = 0;
  if (std::sscanf(argv[1], "%u.%u", &major, &minor) != 2) Die(std::string("no version: ") + argv[1]);
  const VersionRules* rules =
      FindVersion({static_cast<std::uint16_t>(major), static_cast<std::uint16_t>(minor)});
  if (rules == nullptr) Die("PyTorch before 2.0");
  std::vector<std::string> settings = Lines(argv[4]);
  if (settings.empty()) settings.emplace_back();
  Comparison comparison(*rules, std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10),
                        std::move(settings), argv[5]);
  comparison.Run();
  return comparison.Report();
} catch (const std::exception& error) {
  Die(error.what());
}
