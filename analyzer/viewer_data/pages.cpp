// What the server answers; see serve.h.
#include <sys/random.h>
#include <sys/stat.h>

#include <charconv>
#include <optional>

#include "analyzer/viewer_data/page.h"
#include "analyzer/viewer_data/serve.h"

namespace vramtrace::viewer_data {
namespace {

std::string MakeToken() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kDigits[byte >> 4];
    token += kDigits[byte & 15];
  }
  return token;
}

// Takes as long whatever the first difference is.
bool SameText(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

bool IsThisMachine(std::string_view host) {
  host = host.substr(0, host.rfind(':'));  // without the port, which a tunnel may change
  return host == "127.0.0.1" || host == "localhost";
}

std::optional<uint32_t> Number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The value of `name` in "a=1&b=2".
std::string_view Field(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view field = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), field.size() + 1));
    if (field.starts_with(name) && field.substr(name.size()).starts_with('=')) {
      return field.substr(name.size() + 1);
    }
  }
  return {};
}

std::optional<Selection> ParseSelection(std::string_view query) {
  const auto device = Number(Field(query, "device"));
  const auto from = Number(Field(query, "from"));
  const auto to = Number(Field(query, "to"));
  const std::string_view mode = Field(query, "mode");
  if (!device || !from || !to) return std::nullopt;
  for (const auto& [name, value] :
       {std::pair{"alive", Mode::kAlive}, std::pair{"allocated", Mode::kAllocated},
        std::pair{"kept", Mode::kKept}, std::pair{"freed", Mode::kFreed}, std::pair{"seen", Mode::kSeen}}) {
    if (mode == name) return Selection{*device, value, *from, *to};
  }
  return std::nullopt;
}

}  // namespace

trace::Result<std::unique_ptr<Pages>> Pages::Open(std::vector<ServedTrace> traces,
                                                  const FileOptions& options) {
  std::string token = MakeToken();
  if (token.empty()) return trace::Error{"/dev/urandom", std::nullopt, "the system gives no random bytes"};
  std::unique_ptr<Pages> pages(new Pages(std::move(token), options));
  for (ServedTrace& served : traces) {
    Trace& trace = pages->traces_.emplace_back();
    trace.served = std::move(served);
    const trace::Result<bool> loaded = pages->Load(&trace, trace.served.diagnoses);
    if (!loaded.ok()) return loaded.error();
  }
  return pages;
}

trace::Result<bool> Pages::Load(Trace* trace, Diagnoses diagnoses) {
  struct stat status {};
  if (::stat(trace->served.path.c_str(), &status) == 0) {
    trace->changed_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
    trace->bytes = static_cast<uint64_t>(status.st_size);
  }
  auto data = ViewerData::Build(trace->served.path, diagnoses);
  if (!data.ok()) return data.error();
  trace->data = std::move(data.value());
  FileOptions options = options_;
  options.base = trace->served.base;
  options.forecasts = trace->served.forecasts;
  options.whole_run = trace->served.whole_run;
  options.served = true;
  options.version = version_;
  trace->file = Gzip(trace->data->Write(options).bytes);
  return true;
}

bool Pages::Refresh() {
  bool changed = false;
  for (Trace& trace : traces_) {
    struct stat status {};
    if (::stat(trace.served.path.c_str(), &status) != 0) continue;
    const int64_t now = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
    if (now == trace.changed_ns && static_cast<uint64_t>(status.st_size) == trace.bytes) continue;
    Trace next;
    next.served = trace.served;
    // While the file is read the old data answers; a trace that cannot be read now may be readable later.
    if (!Load(&next, Diagnoses::kWithoutReplays).ok()) continue;
    const std::lock_guard lock(mutex_);
    trace = std::move(next);
    ++version_;
    changed = true;
  }
  return changed;
}

Response Pages::AnswerTrace(std::string_view rest) {
  const size_t end = std::min(rest.find('/'), rest.size());
  const auto index = Number(rest.substr(0, end));
  if (!index || *index >= traces_.size()) return {404, {}, "there is no such trace\n"};
  const Trace& trace = traces_[*index];
  rest.remove_prefix(end);
  if (rest.empty()) return {200, "application/octet-stream", trace.file, true};
  constexpr std::string_view kBlocks = "/blocks?";
  if (!rest.starts_with(kBlocks)) return {404, {}, "there is nothing of that name\n"};
  const auto selection = ParseSelection(rest.substr(kBlocks.size()));
  if (!selection)
    return {400, {}, "expected device, mode (alive, allocated, kept, freed or seen), from and to\n"};
  return {200, "application/octet-stream", Gzip(trace.data->WriteSelection(*selection)), true};
}

Response Pages::Answer(std::string_view method, std::string_view target, std::string_view host) {
  if (!IsThisMachine(host)) return {403, {}, "ask for 127.0.0.1\n"};
  if (method != "GET") return {405, {}, "only GET is answered\n"};
  const size_t end = target.find('/', 1);
  const bool token = end != std::string_view::npos && SameText(target.substr(1, end - 1), token_);
  if (!token) return {403, {}, "the address needs the token that vramtrace view --serve printed\n"};
  const std::string_view path = target.substr(end);
  const std::lock_guard lock(mutex_);
  if (path == "/") return {200, "text/html; charset=utf-8", MakeServedPage()};
  if (path == "/traces") return {200, {}, std::to_string(traces_.size())};
  if (path == "/version") return {200, {}, std::to_string(version_)};
  constexpr std::string_view kTrace = "/trace/";
  if (path.starts_with(kTrace)) return AnswerTrace(path.substr(kTrace.size()));
  return {404, {}, "there is nothing of that name\n"};
}

}  // namespace vramtrace::viewer_data
