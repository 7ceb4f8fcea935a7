#include "analyzer/viewer_data/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "analyzer/report/units.h"
#include "analyzer/symbolize/names.h"
#include "analyzer/viewer_data/columns_of_curve.h"
#include "analyzer/viewer_data/live_tree.h"
#include "analyzer/viewer_data/palette.h"

namespace vramtrace::viewer_data {
namespace {

constexpr size_t kLabel = 10;  // of the axis

class Drawer {
 public:
  Drawer(const ViewerData& data, const TerminalSize& size, bool color)
      : data_(data), size_(size), color_(color) {}

  std::string Draw() {
    for (const report::v1::DeviceReport& device : data_.report().devices()) {
      const auto curve = data_.curves().find(device.device());
      const Tick tick = data_.ExplainedTick(device.device());
      if (curve == data_.curves().end() || tick == kNever) continue;
      DrawTimeline(device, curve->second, tick);
      DrawTree(device, tick);
    }
    if (out_.empty()) out_ = "Nothing was allocated on a device.\n";
    return std::move(out_);
  }

 private:
  void Paint(size_t band, std::string_view text, char plain) {
    if (!color_) {
      out_ += plain;
      return;
    }
    const uint32_t rgb = ColorOf(band).rgb;
    out_ += fmt::format("\x1b[38;2;{};{};{}m{}\x1b[0m", rgb >> 16, rgb >> 8 & 255, rgb & 255, text);
  }

  void DrawTimeline(const report::v1::DeviceReport& device, const Curve& curve, Tick tick) {
    const size_t width = std::clamp<size_t>(size_.columns, 40, 240) - kLabel - 2;
    const size_t height = std::clamp<size_t>(size_.rows / 3, 8, 20);
    const std::vector<size_t> columns = HighestByColumn(curve, width);
    const uint64_t most = MostBytes(curve);
    const bool refusal = device.has_out_of_memory();
    out_ += fmt::format("GPU {} {}: {} {}{}\n", device.device(), symbolize::Printable(device.name()),
                        report::Size(device.peak_allocated().bytes()), "peak allocated",
                        device.total_bytes() > 0 ? " of " + report::Size(device.total_bytes()) : "");
    if (refusal) out_ += symbolize::Printable(device.out_of_memory().summary()) + "\n";
    const auto& buckets = curve.buckets();
    for (size_t row = 0; row < height; ++row) {
      // The bytes in the middle of the row's cells.
      const double middle =
          static_cast<double>(most) * (static_cast<double>(height - row) - 0.5) / static_cast<double>(height);
      const bool labelled = row % 4 == 0;
      const auto top = static_cast<uint64_t>(static_cast<double>(most) * static_cast<double>(height - row) /
                                             static_cast<double>(height));
      out_ += fmt::format("{:>{}} │", labelled ? report::Size(top) : "", kLabel);
      for (const size_t column : columns) DrawCell(buckets[column], middle);
      out_ += '\n';
    }
    out_ += fmt::format("{:>{}} └", "0", kLabel);
    const size_t here = ColumnOf(curve, width, tick);
    for (size_t column = 0; column < width; ++column) out_ += column == here ? "▲" : "─";
    out_ += fmt::format("\n{:>{}}  ▲ {} (step {}, {}); · reserved by the allocator\n{:>{}}  ", "", kLabel,
                        refusal ? "out of memory" : "the peak",
                        (refusal ? device.at_refusal() : device.at_peak()).moment().step(),
                        (refusal ? device.at_refusal() : device.at_peak()).moment().phase(), "", kLabel);
    const Curve::Bucket& explained = BucketAt(curve, tick);
    for (const ClassColor& row : kPalette) {
      const size_t band = BandOf(row.key);
      if (band >= kBands || explained.bands[band] == 0) continue;
      Paint(band, "█", row.letter);
      out_ += fmt::format(" {} {}  ", WordsOfBand(band), report::Size(explained.bands[band]));
    }
    out_ += "\n\n";
  }

  static const Curve::Bucket& BucketAt(const Curve& curve, Tick tick) {
    const auto& buckets = curve.buckets();
    const auto after =
        std::upper_bound(buckets.begin(), buckets.end(), tick,
                         [](Tick wanted, const Curve::Bucket& bucket) { return wanted < bucket.first.tick; });
    return after == buckets.begin() ? buckets.front() : *std::prev(after);
  }

  void DrawCell(const Curve::Bucket& bucket, double middle) {
    double sum = 0;
    for (const ClassColor& row : kPalette) {
      const size_t band = BandOf(row.key);
      if (band >= kBands) continue;
      sum += static_cast<double>(bucket.bands[band]);
      if (middle <= sum) {
        Paint(band, "█", row.letter);
        return;
      }
    }
    out_ += middle <= static_cast<double>(bucket.highest_reserved) ? "·" : " ";
  }

  // The largest branches, chains of single calls joined into one line.
  void DrawTree(const report::v1::DeviceReport& device, Tick tick) {
    const std::vector<LiveNode> nodes = BuildLiveTree(data_, device.device(), tick);
    const size_t lines = std::clamp<size_t>(size_.rows / 2, 10, 40);
    struct Open {
      size_t node;
      size_t depth;
    };
    std::vector<Open> pending{{0, 0}};
    for (size_t line = 0; line < lines && !pending.empty();) {
      Open at = pending.back();
      pending.pop_back();
      std::string label = at.node == 0 ? fmt::format("{} blocks", report::Grouped(nodes[0].blocks))
                                       : symbolize::Printable(nodes[at.node].label);
      while (at.node != 0 && nodes[at.node].children.size() == 1) {
        at.node = nodes[at.node].children.front();
        label += " › " + symbolize::Printable(nodes[at.node].label);
      }
      const LiveNode& node = nodes[at.node];
      // What is below a hundredth of the whole is not worth a line.
      if (node.bytes * 100 < nodes[0].bytes) continue;
      DrawLine(node, label, at.depth, nodes[0].bytes);
      ++line;
      for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
        pending.push_back({*child, at.depth + 1});
      }
    }
  }

  void DrawLine(const LiveNode& node, std::string_view label, size_t depth, uint64_t whole) {
    constexpr size_t kBar = 20;
    out_ += fmt::format(
        "{:>{}} {:>5.1f} % ", report::Size(node.bytes), kLabel,
        100.0 * static_cast<double>(node.bytes) / static_cast<double>(std::max<uint64_t>(whole, 1)));
    const auto filled = static_cast<size_t>(static_cast<double>(kBar) * static_cast<double>(node.bytes) /
                                            static_cast<double>(std::max<uint64_t>(whole, 1)));
    const size_t band = node.MainClass();
    for (size_t i = 0; i < kBar; ++i) {
      if (i < std::max<size_t>(filled, 1)) {
        Paint(band, "█", ColorOf(band).letter);
      } else {
        out_ += ' ';
      }
    }
    out_ += ' ';
    out_.append(2 * std::min<size_t>(depth, 12), ' ');
    out_ += label;
    if (!node.detail.empty()) out_ += "  " + symbolize::Printable(node.detail);
    out_ += '\n';
  }

  const ViewerData& data_;
  TerminalSize size_;
  bool color_;
  std::string out_;
};

}  // namespace

TerminalSize SizeOfTerminal() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return {size.ws_col, size.ws_row};
}

std::string DrawInTerminal(const ViewerData& data, const TerminalSize& size, bool color) {
  return Drawer(data, size, color).Draw();
}

}  // namespace vramtrace::viewer_data
