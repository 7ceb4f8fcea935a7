#include "preload/simulator/core/report.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "preload/simulator/core/live_report.h"
#include "preload/simulator/core/log.h"
#include "preload/simulator/core/options.h"
#include "preload/simulator/core/state.h"

namespace vramtrace::simulator::report {
namespace {

// One row a Count, in its order: the name in the report.
constexpr std::array kCountNames = {
    "allocations",
    "frees",
    "launches",
    "graph_launches",
    "host_to_device_copies",
    "host_to_device_bytes",
    "unstored_copies",
    "unstored_bytes",
    "device_to_host_copies",
    "device_to_host_bytes",
    "invented_reads",
    "invented_bytes",
    "device_to_device_copies",
    "fills",
    "physical_created",
    "mappings",
    "managed_bytes",
    "pinned_peak_bytes",
    "cleared_blocks",
    "shadow_seen",
    "shadow_computed",
    "shadow_nanoseconds",
};
static_assert(kCountNames.size() == static_cast<size_t>(Count::kCount));

struct Refusal {
  uint64_t bytes = 0;
  uint64_t free_bytes = 0;
  std::string what;
};

struct Book {
  std::mutex mutex;  // the last one: nothing is called with it held
  std::string path;
  std::string live_path;
  LiveReport* live = nullptr;
  bool opened = false;
  bool finished = false;
  pid_t owner = 0;
  std::map<int, Refusal> first_refusals;
  std::map<std::pair<std::string, std::string>, uint64_t> unsupported;
  std::map<std::pair<std::string, std::string>, uint64_t> work;
  std::map<std::array<std::string, 3>, uint64_t> invented;  // effect, where, what
};

std::array<std::atomic<uint64_t>, kCountNames.size()> counts;

Book& TheBook() {
  static auto* book = new Book;
  return *book;
}

std::string ExpandPath(const std::string& pattern) {
  std::string path = pattern;
  for (size_t at = path.find("%p"); at != std::string::npos; at = path.find("%p")) {
    path.replace(at, 2, std::to_string(getpid()));
  }
  return path;
}

void Store(uint64_t* field, uint64_t value) { __atomic_store_n(field, value, __ATOMIC_RELEASE); }

// Maps <path>.live. A second process with the same path takes <path>.<process id>: none overwrites another's.
void OpenLive(Book& book) {
  book.path = ExpandPath(CurrentOptions().report);
  book.live_path = book.path + ".live";
  int file = open(book.live_path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 && errno == EEXIST) {
    book.path += "." + std::to_string(getpid());
    book.live_path = book.path + ".live";
    file = open(book.live_path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  }
  void* page = MAP_FAILED;
  // Blocks are allocated first: a full disk must not become a signal.
  if (file >= 0 && posix_fallocate(file, 0, sizeof(LiveReport)) == 0) {
    page = mmap(nullptr, sizeof(LiveReport), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (page == MAP_FAILED) {
    Warn("cannot write %s: %s; the report is kept until exit only", book.live_path.c_str(), strerror(errno));
  } else {
    book.live = new (page) LiveReport;
    book.live->process_id = static_cast<uint32_t>(getpid());
    book.live->device_count = static_cast<uint32_t>(std::min(DeviceCount(), kLiveReportDevices));
  }
  if (file >= 0) close(file);
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
  }
  return quoted + '"';
}

std::string Field(const char* name, uint64_t value) { return Quoted(name) + ": " + std::to_string(value); }
std::string Field(const char* name, const std::string& value) { return Quoted(name) + ": " + Quoted(value); }

std::string Join(const std::vector<std::string>& parts, const char* open, const char* close) {
  std::string joined = open;
  for (size_t i = 0; i < parts.size(); ++i) joined += (i == 0 ? "" : ", ") + parts[i];
  return joined + close;
}

std::string DeviceText(Book& book, int index, const DeviceBook& device) {
  const Device& facts = *DeviceAt(index);
  std::vector<std::string> owners;
  owners.reserve(device.owners.size());
  for (const auto& [owner, bytes] : device.owners) {
    owners.push_back(Join(
        {Field("owner", owner), Field("bytes", bytes.first), Field("peak_bytes", bytes.second)}, "{", "}"));
  }
  std::vector<std::string> fields = {
      Field("device", static_cast<uint64_t>(index)),
      Field("gpu", std::string(facts.gpu->id)),
      Field("name", facts.name),
      Field("total_bytes", facts.total_bytes),
      Field("context_bytes", facts.context_bytes),
      Field("used_bytes", device.used),
      Field("peak_used_bytes", device.peak),
      Field("refused_allocations", device.refused),
      Field("largest_refused_bytes", device.largest_refused),
      Quoted("outside_allocator") + ": " + Join(owners, "[", "]"),
  };
  if (auto refusal = book.first_refusals.find(index); refusal != book.first_refusals.end()) {
    fields.push_back(
        Quoted("first_refusal") + ": " +
        Join({Field("bytes", refusal->second.bytes), Field("free_bytes", refusal->second.free_bytes),
              Field("by", refusal->second.what)},
             "{", "}"));
  }
  return Join(fields, "{", "}");
}

std::string CallsText(const std::map<std::pair<std::string, std::string>, uint64_t>& calls) {
  std::vector<std::string> rows;
  rows.reserve(calls.size());
  for (const auto& [name, count] : calls) {
    rows.push_back(Join({Field("library", name.first), Field("function", name.second), Field("calls", count)},
                        "{", "}"));
  }
  return Join(rows, "[", "]");
}

std::string InventedText(const Book& book) {
  std::vector<std::string> rows;
  rows.reserve(book.invented.size());
  for (const auto& [names, reads] : book.invented) {
    rows.push_back(Join(
        {Field("effect", names[0]), Field("where", names[1]), Field("what", names[2]), Field("reads", reads)},
        "{", "}"));
  }
  return Join(rows, "[", "]");
}

std::string Text(Book& book) {
  std::vector<std::string> devices;
  State& state = TheState();
  for (int index = 0; index < DeviceCount(); ++index) {
    const DeviceBook& device = state.books[static_cast<size_t>(index)];
    if (device.has_context) devices.push_back(DeviceText(book, index, device));
  }
  std::vector<std::string> numbers;
  numbers.reserve(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) numbers.push_back(Field(kCountNames[i], counts[i].load()));
  return "{" + Field("format", std::string("vramtrace-simulator-report")) + ", " + Field("version", 1) +
         ", " + Field("process_id", static_cast<uint64_t>(getpid())) +
         ",\n \"devices\": " + Join(devices, "[", "]") + ",\n \"counts\": " + Join(numbers, "{", "}") +
         ",\n \"unsupported\": " + CallsText(book.unsupported) +
         ",\n \"work_not_done\": " + CallsText(book.work) + ",\n \"invented_values\": " + InventedText(book) +
         "}\n";
}

bool WriteAtomically(const std::string& path, const std::string& text) {
  std::string temporary = path + ".tmp";
  FILE* file = std::fopen(temporary.c_str(), "we");
  if (file == nullptr) return false;
  bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  good = std::fclose(file) == 0 && good;
  if (good && std::rename(temporary.c_str(), path.c_str()) == 0) return true;
  unlink(temporary.c_str());
  return false;
}

__attribute__((destructor)) void AtExit() { Finish(); }

}  // namespace

void Add(Count count, uint64_t amount) {
  counts[static_cast<size_t>(count)].fetch_add(amount, std::memory_order_relaxed);
}

void Raise(Count count, uint64_t value) {
  auto& counter = counts[static_cast<size_t>(count)];
  uint64_t seen = counter.load(std::memory_order_relaxed);
  while (seen < value && !counter.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

void Open() {
  if (CurrentOptions().report.empty()) return;
  Book& book = TheBook();
  std::lock_guard lock(book.mutex);
  if (book.opened) return;
  book.opened = true;
  book.owner = getpid();
  OpenLive(book);
}

void UpdateDevice(int device) {
  LiveReport* live = TheBook().live;
  if (live == nullptr || Forked() || device >= kLiveReportDevices) return;
  const DeviceBook& book = TheState().books[static_cast<size_t>(device)];
  LiveDevice& entry = live->devices[device];
  Store(&entry.used_bytes, book.used);
  Store(&entry.peak_used_bytes, book.peak);
  Store(&entry.refused_allocations, book.refused);
  Store(&entry.largest_refused_bytes, book.largest_refused);
  if (entry.total_bytes != 0 || !book.has_context) return;
  Store(&entry.context_bytes, DeviceAt(device)->context_bytes);
  Store(&entry.total_bytes, DeviceAt(device)->total_bytes);
}

void Refused(int device, uint64_t bytes, const char* what) {
  const DeviceBook& entry = TheState().books[static_cast<size_t>(device)];
  uint64_t free_bytes = DeviceAt(device)->total_bytes - entry.used;
  Log("refused %lu bytes on device %d for %s: %lu are free", bytes, device, what, free_bytes);
  Book& book = TheBook();
  {
    std::lock_guard lock(book.mutex);
    book.first_refusals.try_emplace(device, Refusal{bytes, free_bytes, what});
  }
  UpdateDevice(device);
}

void Unsupported(const char* library, const char* function) {
  Book& book = TheBook();
  bool first = false;
  {
    std::lock_guard lock(book.mutex);
    first = book.unsupported[{library, function}]++ == 0;
  }
  if (first) Warn("%s of %s is not simulated and answers 'not supported'", function, library);
}

void Work(const char* library, const char* function) {
  Book& book = TheBook();
  std::lock_guard lock(book.mutex);
  ++book.work[{library, function}];
}

void Invented(const char* where, const char* what, const char* effect) {
  constexpr size_t kMostRows = 200;
  Book& book = TheBook();
  std::lock_guard lock(book.mutex);
  std::array<std::string, 3> names = {effect, where, what};
  if (book.invented.size() >= kMostRows && !book.invented.contains(names)) names = {effect, "elsewhere", ""};
  ++book.invented[names];
}

void Finish() {
  Book& book = TheBook();
  if (!book.opened || Forked()) return;
  State& state = TheState();
  std::lock_guard state_lock(state.mutex);
  std::lock_guard lock(book.mutex);
  if (book.finished || book.owner != getpid()) return;
  book.finished = true;
  if (WriteAtomically(book.path, Text(book))) {
    unlink(book.live_path.c_str());
  } else {
    Warn("cannot write the report %s: %s", book.path.c_str(), strerror(errno));
  }
}

}  // namespace vramtrace::simulator::report
