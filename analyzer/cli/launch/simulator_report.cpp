#include "analyzer/cli/launch/simulator_report.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "preload/simulator/core/live_report.h"

namespace vramtrace::launch {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kName = "simulator-";
constexpr std::string_view kLiveEnding = ".live";

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::optional<SimulatedProcess> ReadFinal(const fs::path& path) try {
  const auto report = nlohmann::json::parse(ReadFile(path), nullptr, /*allow_exceptions=*/false);
  if (!report.is_object() || report.value("format", "") != "vramtrace-simulator-report") return std::nullopt;
  SimulatedProcess process{.process = report.value("process_id", 0), .devices = {}, .invented = {}};
  const auto devices = report.find("devices");
  if (devices == report.end() || !devices->is_array()) return std::nullopt;
  for (const auto& device : *devices) {
    if (!device.is_object()) return std::nullopt;
    process.devices.push_back({
        .index = device.value("device", 0),
        .total_bytes = device.value("total_bytes", uint64_t{0}),
        .context_bytes = device.value("context_bytes", uint64_t{0}),
        .peak_used_bytes = device.value("peak_used_bytes", uint64_t{0}),
        .refused_allocations = device.value("refused_allocations", uint64_t{0}),
        .largest_refused_bytes = device.value("largest_refused_bytes", uint64_t{0}),
    });
  }
  const auto invented = report.find("invented_values");
  if (invented != report.end() && invented->is_array()) {
    for (const auto& read : *invented) {
      if (!read.is_object()) continue;
      process.invented.push_back({.effect = read.value("effect", ""),
                                  .where = read.value("where", ""),
                                  .what = read.value("what", ""),
                                  .reads = read.value("reads", uint64_t{0})});
    }
  }
  return process;
} catch (const nlohmann::json::exception&) {  // a field of another type
  return std::nullopt;
}

std::optional<SimulatedProcess> ReadLive(const fs::path& path) {
  const std::string bytes = ReadFile(path);
  simulator::LiveReport live;
  if (bytes.size() < sizeof(live)) return std::nullopt;
  std::memcpy(&live, bytes.data(), sizeof(live));
  if (live.magic != simulator::kLiveReportMagic || live.version != simulator::kLiveReportVersion) {
    return std::nullopt;
  }
  SimulatedProcess process{.process = static_cast<int>(live.process_id), .devices = {}, .invented = {}};
  const auto count = std::min<uint32_t>(live.device_count, simulator::kLiveReportDevices);
  for (uint32_t index = 0; index < count; ++index) {
    const simulator::LiveDevice& device = live.devices[index];
    if (device.total_bytes == 0) continue;
    process.devices.push_back({.index = static_cast<int>(index),
                               .total_bytes = device.total_bytes,
                               .context_bytes = device.context_bytes,
                               .peak_used_bytes = device.peak_used_bytes,
                               .refused_allocations = device.refused_allocations,
                               .largest_refused_bytes = device.largest_refused_bytes});
  }
  return process;
}

}  // namespace

std::string SimulatorReportPattern(const fs::path& folder) {
  return folder / (std::string(kName) + "%p.json");
}

std::vector<SimulatedProcess> ReadSimulatorReports(const fs::path& folder) {
  std::vector<SimulatedProcess> processes;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename().string();
    if (!name.starts_with(kName) || name.ends_with(".tmp")) continue;
    auto process = name.ends_with(kLiveEnding) ? ReadLive(each->path()) : ReadFinal(each->path());
    if (process && !process->devices.empty()) processes.push_back(*std::move(process));
  }
  std::sort(processes.begin(), processes.end(),
            [](const auto& a, const auto& b) { return a.process < b.process; });
  return processes;
}

}  // namespace vramtrace::launch
