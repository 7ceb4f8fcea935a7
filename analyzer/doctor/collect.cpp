#include "analyzer/doctor/collect.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "analyzer/doctor/native_probe.h"
#include "analyzer/doctor/probe_source.h"

namespace vramtrace::doctor {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

std::string Text(const json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

template <typename Number>
Number Value(const json& line, const char* key) {
  const auto found = line.find(key);
  // A float beyond an integer's range has no value there.
  const bool fits =
      found != line.end() && (std::is_integral_v<Number> ? found->is_number_integer() : found->is_number());
  return fits ? found->get<Number>() : Number{};
}

// A card's place; machines have at most a few.
CardFacts* CardAt(Facts* facts, const json& line) {
  const auto index = Value<size_t>(line, "index");
  if (index >= 64) return nullptr;
  if (facts->cards.size() <= index) facts->cards.resize(index + 1);
  return &facts->cards[index];
}

void TakeCard(const json& line, Facts* facts) {
  CardFacts* card = CardAt(facts, line);
  if (card == nullptr) return;
  std::string uuid = Text(line, "uuid");
  if (!uuid.empty() && !uuid.starts_with("GPU-") && !uuid.starts_with("MIG-")) uuid.insert(0, "GPU-");
  card->cuda = {Text(line, "name"),
                std::move(uuid),
                Value<uint64_t>(line, "total"),
                Value<uint64_t>(line, "free"),
                Value<int>(line, "multiprocessors"),
                Value<int>(line, "major"),
                Value<int>(line, "minor")};
}

// A child that prints lines. What it has not said when the time is over is not said.
class Child {
 public:
  // `run` is called in the child, with stdout on the pipe; it must not return.
  explicit Child(const std::function<void()>& run) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setpgid(0, 0);
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      run();
      ::_exit(127);
    }
    ::close(ends[1]);
    descriptor_ = ends[0];
  }

  // True when the child ended by itself in time.
  bool Read(double seconds, const std::function<void(std::string_view)>& use) {
    const auto until =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    std::string rest;
    bool ended = false;
    while (descriptor_ >= 0 && !ended) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
      if (left <= 0) break;
      pollfd waiting = {descriptor_, POLLIN, 0};
      if (::poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, 1000))) <= 0) continue;
      char buffer[4096];
      const ssize_t got = ::read(descriptor_, buffer, sizeof buffer);
      if (got <= 0) {
        ended = true;
      } else {
        rest.append(buffer, static_cast<size_t>(got));
      }
      for (size_t end = 0; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1)) {
        use(std::string_view(rest).substr(0, end));
      }
    }
    return ended;
  }

  ~Child() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

 private:
  pid_t pid_ = -1;
  int descriptor_ = -1;
};

void Take(Child* child, double seconds, Facts* facts, const CollectOptions& options) {
  // A probe ends itself at its time; one that hangs is ended a little later.
  const bool ended =
      child->Read(seconds + 5, [&](std::string_view line) { TakeProbeLine(line, facts, options.progress); });
  const std::string why = ended ? "the probe ended before it"
                                : "the probe did not answer in time; what was measured before is kept";
  for (CardFacts& card : facts->cards) {
    for (int rate = 0; rate < static_cast<int>(Rate::kCount); ++rate) {
      card.rates.try_emplace(static_cast<Rate>(rate), Measured{std::nullopt, why});
    }
  }
  if (facts->cards.empty() && facts->software.why.empty()) facts->software.why = why;
}

void RunTorch(const CollectOptions& options, double seconds, Facts* facts) {
  options.progress(fmt::format("measuring through PyTorch of {}", options.python));
  const std::string limit = fmt::format("{:.1f}", seconds);
  Child child([&] {
    const char* simulated = options.simulated ? "--simulated" : nullptr;
    ::execlp(options.python.c_str(), options.python.c_str(), "-c", kProbeSource, limit.c_str(), simulated,
             static_cast<char*>(nullptr));
  });
  Take(&child, seconds, facts, options);
}

void RunNative(const CollectOptions& options, double seconds, Facts* facts) {
  options.progress("measuring through CUDA's runtime and cuBLAS");
  Child child([&] {
    RunNativeProbe(seconds);
    ::_exit(0);
  });
  Take(&child, seconds, facts, options);
}

// NVML orders cards by their bus, CUDA by speed where nobody says otherwise: the UUID joins them.
void JoinBoards(std::vector<BoardFacts>&& boards, const std::vector<std::string>& uuids, Facts* facts) {
  if (facts->cards.empty()) facts->cards.resize(boards.size());
  for (size_t index = 0; index < facts->cards.size(); ++index) {
    CardFacts& card = facts->cards[index];
    const auto found = std::find(uuids.begin(), uuids.end(), card.cuda.uuid);
    const size_t place = found != uuids.end() ? static_cast<size_t>(found - uuids.begin()) : index;
    if (place < boards.size()) card.board = boards[place];
  }
}

BoardFacts AskBoard(const nvml::Device& device) {
  BoardFacts board;
  board.seen = true;
  board.name = device.Name().Or("");
  board.simulated = nvml::IsSimulated(device);
  if (const auto memory = device.MemoryInfo()) {
    board.memory = *memory;
    board.has_memory = true;
  }
  board.ecc = device.Ecc();
  board.mig = device.Mig();
  board.virtualization = device.VirtualizationMode();
  board.link_now = device.LinkNow();
  board.link_most = device.LinkMost();
  board.nvlinks = device.NvLinks();
  board.clock_most = device.SmClockMost();
  board.celsius = device.Celsius();
  board.watts_limit = device.WattsLimit();
  board.throttle = device.ThrottleReasons();
  board.processes = device.ComputeProcesses();
  return board;
}

}  // namespace

void TakeProbeLine(std::string_view text, Facts* facts,
                   const std::function<void(const std::string&)>& progress) {
  const json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) return;
  const std::string what = Text(line, "what");
  if (what == "progress") progress(Text(line, "text"));
  if (what == "card") TakeCard(line, facts);
  if (what == "missing") facts->software.why = Text(line, "why");
  if (what == "runtime") {
    facts->software.by = Text(line, "by");
    facts->software.torch = Text(line, "torch");
    if (!facts->software.torch.empty()) facts->software.torch_cuda = Text(line, "cuda");
    const auto names = line.find("architectures");
    if (names != line.end() && names->is_array()) {
      for (const json& name : *names) {
        if (name.is_string()) facts->software.architectures.push_back(name.get<std::string>());
      }
    }
  }
  if (what != "rate" && what != "not") return;
  CardFacts* card = CardAt(facts, line);
  const auto rate = RateByKey(Text(line, "kind"));
  if (card == nullptr || !rate) return;
  if (what == "rate") {
    card->rates[*rate] = {Value<double>(line, "value"), ""};
  } else {
    card->rates[*rate] = {std::nullopt, Text(line, "why")};
  }
}

void AskNvml(Facts* facts, const std::string& file) {
  std::string why;
  const auto library = nvml::Library::Open(&why, file);
  if (library == nullptr) {
    facts->why_no_nvml = why;
    for (CardFacts& card : facts->cards) card.board.why = why;
    return;
  }
  facts->software.driver = library->DriverVersion().Or("");
  facts->software.driver_cuda = library->CudaVersion().value;
  std::vector<BoardFacts> boards;
  std::vector<std::string> uuids;
  for (const nvml::Device& device : library->devices()) {
    boards.push_back(AskBoard(device));
    uuids.push_back(device.Uuid().Or(""));
  }
  JoinBoards(std::move(boards), uuids, facts);
}

Facts Collect(const CollectOptions& options) {
  Facts facts;
  facts.simulated = options.simulated;
  facts.has_clock = options.has_clock;
  const double for_disk = options.data.empty() ? 0 : options.seconds * 0.15;
  const double for_probe = options.seconds - for_disk;
  const auto began = Clock::now();
  if (options.probe == ProbeChoice::kAuto || options.probe == ProbeChoice::kTorch)
    RunTorch(options, for_probe, &facts);
  const double spent = std::chrono::duration<double>(Clock::now() - began).count();
  const bool native =
      options.probe == ProbeChoice::kNative || (options.probe == ProbeChoice::kAuto && facts.cards.empty());
  if (native) {
    const Software before = facts.software;
    RunNative(options, std::max(1.0, for_probe - spent), &facts);
    if (facts.software.torch.empty()) {
      facts.software.torch = before.torch;
      facts.software.torch_cuda = before.torch_cuda;
    }
  }
  if (options.probe == ProbeChoice::kNone) facts.software.why = "--probe none: nothing was measured";
  options.progress("asking NVML and the machine");
  AskNvml(&facts);
  for (CardFacts& card : facts.cards) card.sold_as = options.sold_as;
  facts.host = ReadHost();
  if (!options.data.empty()) {
    options.progress("reading " + options.data);
    facts.host.disk = MeasureDisk(options.data, for_disk);
  }
  return facts;
}

}  // namespace vramtrace::doctor
