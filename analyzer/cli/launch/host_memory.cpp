#include "analyzer/cli/launch/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include "analyzer/cli/launch/process_tree.h"

namespace vramtrace::launch {
namespace {

constexpr uint64_t kMiB = 1ULL << 20;
// Faster than any process was seen to grow; sets how often to look.
constexpr uint64_t kFastestBytesPerMs = 8 * kMiB;

std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (!(file >> number)) return std::nullopt;  // "max" is not a number: no limit
  return number;
}

// A line "<key> <number>" of a file such as meminfo or memory.stat.
std::optional<uint64_t> ReadField(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    if (word == key) {
      uint64_t number = 0;
      if (file >> number) return number;
      return std::nullopt;
    }
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

struct Controller {
  const char* mount;
  const char* limit;
  const char* usage;
  const char* droppable;  // file pages in memory.stat that can go at once
};

constexpr Controller kVersion2{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
constexpr Controller kVersion1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                               "total_inactive_file"};

// Tightens `room` by one group and every group above it.
void ApplyGroups(const std::string& root, const Controller& controller, std::string group, HostRoom* room) {
  while (true) {
    const std::string folder = root + controller.mount + (group == "/" ? "" : group) + "/";
    const auto limit = ReadNumber(folder + controller.limit);
    const auto usage = ReadNumber(folder + controller.usage);
    if (limit && usage && *limit < room->total_bytes) {
      const uint64_t droppable = ReadField(folder + "memory.stat", controller.droppable).value_or(0);
      const uint64_t held = *usage - std::min(*usage, droppable);
      const uint64_t available = *limit - std::min(*limit, held);
      room->total_bytes = *limit;
      if (available < room->available_bytes) {
        room->available_bytes = available;
        room->is_group_limit = true;
      }
    }
    if (group.empty() || group == "/") return;
    group.erase(group.rfind('/'));
  }
}

}  // namespace

std::optional<HostRoom> ReadHostRoom(const std::string& root) {
  const auto total = ReadField(root + "/proc/meminfo", "MemTotal:");
  const auto available = ReadField(root + "/proc/meminfo", "MemAvailable:");
  if (!total || !available) return std::nullopt;
  HostRoom room{.total_bytes = *total << 10, .available_bytes = *available << 10};
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string group = line.substr(second + 1);
    if (controllers == ",,") ApplyGroups(root, kVersion2, group, &room);
    if (controllers.find(",memory,") != std::string::npos) {
      ApplyGroups(root, kVersion1, group, &room);
      // In a container the path is the host's and only the mount's root is there.
      ApplyGroups(root, kVersion1, "/", &room);
    }
  }
  return room;
}

uint64_t HostReserve(uint64_t total_bytes) {
  return std::clamp<uint64_t>(total_bytes / 100 * 3, 64 * kMiB, 1024 * kMiB);
}

std::optional<HostMemoryWatch::Shortage> HostMemoryWatch::Look(pid_t wrapper) {
  uint64_t used = 0;
  for (const pid_t process : Descendants(wrapper)) used += HostBytes(process);
  peak_bytes_ = std::max(peak_bytes_, used);

  uint64_t room_left = std::numeric_limits<uint64_t>::max();
  std::optional<Shortage> shortage;
  if (const auto room = ReadHostRoom()) {
    const uint64_t reserve = HostReserve(room->total_bytes);
    room_left = room->available_bytes - std::min(room->available_bytes, reserve);
    if (room_left == 0 && used > reserve) {
      shortage =
          Shortage{.used_bytes = used,
                   .limit_bytes = used + room->available_bytes - std::min(room->available_bytes, reserve),
                   .is_group_limit = room->is_group_limit};
    }
  }
  if (limit_bytes_) {
    room_left = std::min(room_left, *limit_bytes_ - std::min(*limit_bytes_, used));
    if (used > *limit_bytes_) {
      shortage = Shortage{.used_bytes = used, .limit_bytes = *limit_bytes_, .is_asked = true};
    }
  }
  pause_ = std::chrono::milliseconds(std::clamp<uint64_t>(room_left / kFastestBytesPerMs / 2, 5, 250));
  return shortage;
}

}  // namespace vramtrace::launch
