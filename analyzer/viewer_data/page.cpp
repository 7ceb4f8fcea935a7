#include "analyzer/viewer_data/page.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

namespace vramtrace::viewer_data {
namespace {

// In viewer/index.html and in the policy that viewer/packaging/single_file.ts writes.
constexpr std::string_view kDataPlace = "@VRAMTRACE_DATA@";
constexpr std::string_view kSourcesPlace = "@VRAMTRACE_SOURCES@";

}  // namespace

std::string Gzip(std::string_view bytes) {
  constexpr int kGzipWindow = 15 + 16;  // zlib.h, deflateInit2: 16 more asks for a gzip header
  constexpr int kMemoryLevel = 9;
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  std::string out;
  std::string buffer(1 << 16, '\0');
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0 && !bytes.empty()) {
      constexpr size_t kStep = size_t{1} << 30;  // avail_in has 32 bits
      const std::string_view step = bytes.substr(0, std::min(kStep, bytes.size()));
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(step.data()));
      stream.avail_in = static_cast<uInt>(step.size());
      bytes.remove_prefix(step.size());
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.append(buffer, 0, buffer.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

std::string Base64(std::string_view bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<uint8_t>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      out += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return out;
}

namespace {

// The template with `elements` for its data and `sources` added to its policy.
std::string Fill(std::string_view elements, std::string_view sources) {
  std::string html(PageTemplate());
  for (const auto& [place, text] : {std::pair{kDataPlace, elements}, std::pair{kSourcesPlace, sources}}) {
    const size_t at = html.find(place);
    if (at == std::string::npos) return {};
    html.replace(at, place.size(), text);
  }
  return html;
}

}  // namespace

std::string MakePage(const std::vector<std::string>& files) {
  std::string elements;
  for (const std::string& file : files) {
    elements += R"(<script type="application/gzip;base64" class="vramtrace-data">)";
    elements += Base64(Gzip(file));
    elements += "</script>\n";
  }
  return Fill(elements, "");
}

std::string MakeServedPage() { return Fill("", "; connect-src 'self'"); }

}  // namespace vramtrace::viewer_data
