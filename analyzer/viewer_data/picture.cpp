#include "analyzer/viewer_data/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/report/units.h"
#include "analyzer/viewer_data/columns_of_curve.h"
#include "analyzer/viewer_data/live_tree.h"
#include "analyzer/viewer_data/palette.h"

namespace vramtrace::viewer_data {
namespace {

constexpr double kWidth = 1280;
constexpr double kLeft = 76;
constexpr double kRight = kWidth - 16;
constexpr double kPlot = 300;  // height of the timeline
constexpr double kRow = 20;
constexpr size_t kDeepest = 40;
constexpr double kCharacter = 6.6;  // mean width at 12 pixels, of the fonts that are asked for

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // XML has no way to write control characters.
        out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

// As much of the text as fits; names are ASCII but for a few, whose bytes are kept together.
std::string Fitted(std::string_view text, double width) {
  const auto room = static_cast<size_t>(std::max(0.0, width / kCharacter));
  if (text.size() <= room) return Escaped(text);
  if (room < 4) return {};
  size_t end = room - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return Escaped(text.substr(0, end)) + "…";
}

std::string_view TextOn(uint32_t rgb) {
  // Rec. 601's luma is near enough for black or white.
  const double luma = 0.299 * (rgb >> 16) + 0.587 * (rgb >> 8 & 255) + 0.114 * (rgb & 255);
  return luma > 118 ? "#101418" : "#ffffff";
}

class Drawer {
 public:
  explicit Drawer(const ViewerData& data) : data_(data) {}

  std::string Draw() {
    for (const report::v1::DeviceReport& device : data_.report().devices()) {
      const auto curve = data_.curves().find(device.device());
      const Tick tick = data_.ExplainedTick(device.device());
      if (curve == data_.curves().end() || tick == kNever) continue;
      Title(device);
      Timeline(device, curve->second, tick);
      Legend(curve->second, tick);
      Flame(device.device(), tick);
    }
    return fmt::format(
               R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
               R"(font-family="system-ui, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif" font-size="12" )"
               R"(dominant-baseline="central" role="img"><title>GPU memory by vramtrace</title>)"
               R"(<rect width="100%" height="100%" fill="#ffffff"/>)",
               kWidth, y_ + 10) +
           "\n" + out_ + "</svg>\n";
  }

 private:
  void Text(double x, double y, std::string_view attributes, std::string_view escaped) {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes, escaped);
  }

  void Title(const report::v1::DeviceReport& device) {
    const auto& arguments = data_.report().program().arguments();
    std::string program = arguments.empty() ? "" : arguments[0];
    for (const std::string& argument : arguments) {
      if (argument.ends_with(".py")) program = argument;
    }
    const std::string bytes =
        fmt::format("{} peak allocated{} on {}", report::Size(device.peak_allocated().bytes()),
                    device.total_bytes() > 0 ? " of " + report::Size(device.total_bytes()) : "",
                    device.name().empty() ? fmt::format("GPU {}", device.device()) : device.name());
    Text(16, y_ + 20, R"(font-size="17" font-weight="600" fill="#1b1f24")",
         Escaped(program.substr(program.rfind('/') + 1) + ": " + bytes));
    y_ += 38;
    if (!device.has_out_of_memory()) return;
    Text(16, y_ + 6, R"(font-weight="600" fill="#b3261e")", Escaped(device.out_of_memory().summary()));
    y_ += 20;
  }

  void Timeline(const report::v1::DeviceReport& device, const Curve& curve, Tick tick) {
    const auto columns = static_cast<size_t>(kRight - kLeft);
    const std::vector<size_t> chosen = HighestByColumn(curve, columns);
    const auto& buckets = curve.buckets();
    uint64_t most = MostBytes(curve);
    if (device.total_bytes() > 0 && most * 20 >= device.total_bytes() * 9)
      most = std::max(most, device.total_bytes());
    const double highest = static_cast<double>(most) * 1.05;
    const double bottom = y_ + kPlot;
    const auto y = [&](double bytes) { return bottom - bytes / highest * kPlot; };
    for (int i = 0; i <= 4; ++i) {
      const double bytes = static_cast<double>(most) * i / 4;
      out_ += fmt::format(R"(<line x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}" stroke="#e8ebef"/>)", kLeft,
                          kRight, y(bytes), y(bytes));
      Text(kLeft - 6, y(bytes), R"(text-anchor="end" font-size="11" fill="#656d76")",
           report::Size(static_cast<uint64_t>(bytes)));
    }
    std::vector<double> below(columns, 0);
    for (const ClassColor& color : kPalette) {
      const size_t band = BandOf(color.key);
      if (band >= kBands) continue;
      Area(color, band, chosen, buckets, y, &below);
    }
    Outline(chosen, buckets, y);
    if (device.total_bytes() > 0 && static_cast<double>(device.total_bytes()) < highest) {
      const double at = y(static_cast<double>(device.total_bytes()));
      out_ += fmt::format(
          R"(<line x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}" stroke="#b3261e" stroke-width="1.5" stroke-dasharray="7 4"/>)",
          kLeft, kRight, at, at);
      Text(kLeft + 6, at + 10, R"(font-size="11" fill="#b3261e")",
           report::Size(device.total_bytes()) + " on the device");
    }
    Mark(device, curve, tick, bottom);
    y_ = bottom + 10;
  }

  template <typename ToY>
  void Area(const ClassColor& color, size_t band, const std::vector<size_t>& chosen,
            const std::vector<Curve::Bucket>& buckets, const ToY& y, std::vector<double>* below) {
    std::string upper;
    std::string lower;
    bool any = false;
    double above_before = -1;
    double below_before = -1;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const auto bytes = static_cast<double>(buckets[chosen[i]].bands[band]);
      any = any || bytes > 0;
      const double x = kLeft + static_cast<double>(i);
      const double under = y((*below)[i]);
      const double over = y((*below)[i] + bytes);
      // A step only where the height changes by what a screen shows.
      if (std::abs(over - above_before) > 0.05) upper += fmt::format("H{:.0f}V{:.1f}", x, over);
      if (std::abs(under - below_before) > 0.05) lower.insert(0, fmt::format("V{:.1f}H{:.0f}", under, x));
      if (std::abs(over - above_before) > 0.05) above_before = over;
      if (std::abs(under - below_before) > 0.05) below_before = under;
      (*below)[i] += bytes;
    }
    if (!any) return;
    out_ += fmt::format(R"(<path d="M{:.0f} {:.1f}{}H{:.0f}{}Z" fill="#{:06x}"><title>{}</title></path>)",
                        kLeft, y(0), upper, kRight, lower, color.rgb, WordsOfBand(band));
    out_ += '\n';
  }

  template <typename ToY>
  void Outline(const std::vector<size_t>& chosen, const std::vector<Curve::Bucket>& buckets, const ToY& y) {
    std::string path = fmt::format("M{:.0f} {:.1f}", kLeft, y(0));
    double before = -1;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const double at = y(static_cast<double>(buckets[chosen[i]].highest_reserved));
      if (std::abs(at - before) <= 0.05) continue;
      path += fmt::format("H{:.0f}V{:.1f}", kLeft + static_cast<double>(i), at);
      before = at;
    }
    path += fmt::format("H{:.0f}", kRight);
    out_ += fmt::format(R"(<path d="{}" fill="none" stroke="#656d76"><title>reserved</title></path>)", path);
    out_ += '\n';
  }

  void Mark(const report::v1::DeviceReport& device, const Curve& curve, Tick tick, double bottom) {
    const double x =
        kLeft + static_cast<double>(ColumnOf(curve, static_cast<size_t>(kRight - kLeft), tick)) + 0.5;
    const bool refusal = device.has_out_of_memory();
    const std::string_view color = refusal ? "#b3261e" : "#1b1f24";
    out_ += fmt::format(R"(<line x1="{0}" x2="{0}" y1="{1}" y2="{2}" stroke="{3}" stroke-dasharray="{4}"/>)",
                        x, y_, bottom, color, refusal ? "none" : "3 3");
    const auto& moment = (refusal ? device.at_refusal() : device.at_peak()).moment();
    const std::string words =
        fmt::format("{}: step {}, {}", refusal ? "out of memory" : "peak", moment.step(), moment.phase());
    const bool right = x + 220 > kRight;
    const double edge = right ? x - 6 - kCharacter * static_cast<double>(words.size()) : x + 3;
    out_ += fmt::format(
        R"(<rect x="{:.0f}" y="{:.0f}" width="{:.0f}" height="16" fill="#ffffff" opacity="0.8"/>)", edge,
        y_ + 1, kCharacter * static_cast<double>(words.size()) + 6);
    Text(right ? x - 6 : x + 6, y_ + 9,
         fmt::format(R"(font-weight="600" fill="{}"{})", color, right ? R"( text-anchor="end")" : ""),
         Escaped(words));
  }

  void Legend(const Curve& curve, Tick tick) {
    const auto& buckets = curve.buckets();
    const auto after =
        std::upper_bound(buckets.begin(), buckets.end(), tick,
                         [](Tick wanted, const Curve::Bucket& bucket) { return wanted < bucket.first.tick; });
    const Curve::Bucket& at = after == buckets.begin() ? buckets.front() : *std::prev(after);
    double x = kLeft;
    for (const ClassColor& color : kPalette) {
      const size_t band = BandOf(color.key);
      if (band >= kBands || at.bands[band] == 0) continue;
      const std::string words = fmt::format("{} {}", WordsOfBand(band), report::Size(at.bands[band]));
      const double width = 24 + kCharacter * static_cast<double>(words.size());
      if (x + width > kRight) {
        x = kLeft;
        y_ += 18;
      }
      out_ += fmt::format(R"(<rect x="{:.0f}" y="{:.0f}" width="11" height="11" fill="#{:06x}"/>)", x, y_ + 2,
                          color.rgb);
      Text(x + 16, y_ + 8, R"(fill="#1b1f24")", Escaped(words));
      x += width;
    }
    y_ += 30;
  }

  void Flame(uint32_t device, Tick tick) {
    const std::vector<LiveNode> nodes = BuildLiveTree(data_, device, tick);
    if (nodes[0].bytes == 0) return;
    const double scale = (kWidth - 32) / static_cast<double>(nodes[0].bytes);
    struct Open {
      size_t node;
      size_t depth;
      double x;
    };
    std::vector<Open> pending{{0, 0, 16}};
    size_t deepest = 0;
    while (!pending.empty()) {
      const Open at = pending.back();
      pending.pop_back();
      const LiveNode& node = nodes[at.node];
      const double width = static_cast<double>(node.bytes) * scale;
      if (width < 1 || at.depth > kDeepest) continue;
      deepest = std::max(deepest, at.depth);
      Box(node, at.node == 0, at.x, y_ + static_cast<double>(at.depth) * kRow, width, nodes[0].bytes);
      double x = at.x;
      for (const size_t child : node.children) {
        pending.push_back({child, at.depth + 1, x});
        x += static_cast<double>(nodes[child].bytes) * scale;
      }
    }
    y_ += static_cast<double>(deepest + 1) * kRow + 16;
  }

  void Box(const LiveNode& node, bool root, double x, double y, double width, uint64_t whole) {
    const size_t main = node.MainClass();
    const bool pure = static_cast<double>(node.by_class[main]) >= 0.97 * static_cast<double>(node.bytes);
    const uint32_t rgb = pure && !root ? ColorOf(main).rgb : 0xD5D9DF;
    const std::string name =
        root ? fmt::format("{} in {} blocks", report::Size(node.bytes), report::Grouped(node.blocks))
             : node.label;
    out_ += fmt::format(
        R"(<g><title>{} {}: {}, {} B, {}</title><rect x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{}" fill="#{:06x}"/>)",
        Escaped(name), Escaped(node.detail), report::Size(node.bytes), report::Grouped(node.bytes),
        report::Share(static_cast<double>(node.bytes), static_cast<double>(whole)), x, y,
        std::max(0.5, width - 1), kRow - 1, rgb);
    const std::string text = Fitted(name, width - 8);
    if (!text.empty()) Text(x + 4, y + (kRow - 1) / 2, fmt::format(R"(fill="{}")", TextOn(rgb)), text);
    out_ += "</g>\n";
  }

  const ViewerData& data_;
  std::string out_;
  double y_ = 0;
};

}  // namespace

std::string DrawPicture(const ViewerData& data) { return Drawer(data).Draw(); }

}  // namespace vramtrace::viewer_data
