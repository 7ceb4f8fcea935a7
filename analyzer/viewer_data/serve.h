#pragma once
// Serves the page of traces that are too large to embed, or still being written, to a browser on this
// machine.
//
// It listens on 127.0.0.1 only. Everything lies under a path that begins with a random token, so that other
// users of the machine cannot read it; requests that name another host are refused, so that no web page can
// be made to (DNS rebinding). What is under the token:
//
//   /                      the page
//   /traces                how many traces there are
//   /trace/N               the data file (columns.h) of the N-th
//   /trace/N/blocks?device=&mode=&from=&to=   columns "block.*" of a selection of it
//   /version               changes when a live trace was read anew

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/trace/result.h"
#include "analyzer/viewer_data/build.h"

namespace vramtrace::viewer_data {

struct ServedTrace {
  std::string path;
  bool base = false;
  std::vector<report::v1::Forecast> forecasts = {};
  std::string whole_run = {};  // see FileOptions
  // When it is opened; when it is read anew, remedies say no more than what they save at most.
  Diagnoses diagnoses = Diagnoses::kWithoutReplays;
};

struct Response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  bool compressed = false;  // with gzip
};

// What is answered to whom; knows no sockets. Safe to ask from several threads.
class Pages {
 public:
  // `options.blocks`: above it the page asks for blocks instead of holding them.
  static trace::Result<std::unique_ptr<Pages>> Open(std::vector<ServedTrace> traces,
                                                    const FileOptions& options);

  // `target`: path and query of the request line. `host`: its Host header.
  [[nodiscard]] Response Answer(std::string_view method, std::string_view target, std::string_view host);
  // Reads traces whose files have changed anew. True when there was one.
  bool Refresh();
  [[nodiscard]] const std::string& token() const { return token_; }

 private:
  struct Trace {
    ServedTrace served;
    std::unique_ptr<ViewerData> data;
    std::string file;  // compressed
    int64_t changed_ns = 0;
    uint64_t bytes = 0;
  };

  Pages(std::string token, const FileOptions& options) : token_(std::move(token)), options_(options) {}
  [[nodiscard]] trace::Result<bool> Load(Trace* trace, Diagnoses diagnoses);
  [[nodiscard]] Response AnswerTrace(std::string_view rest);

  std::string token_;
  FileOptions options_;
  std::mutex mutex_;
  std::vector<Trace> traces_;
  uint64_t version_ = 1;
};

struct ServeOptions {
  uint16_t port = 0;  // 0: the first free one from kFirstPort on
  bool watch = false;
};
inline constexpr uint16_t kFirstPort = 8700;

class Server {
 public:
  // The error says what to do where the port is taken.
  static trace::Result<std::unique_ptr<Server>> Listen(std::shared_ptr<Pages> pages,
                                                       const ServeOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] uint16_t port() const { return port_; }
  [[nodiscard]] std::string Address() const;
  // Until the process is interrupted.
  void Run();

 private:
  Server(std::shared_ptr<Pages> pages, int socket, uint16_t port, bool watch)
      : pages_(std::move(pages)), socket_(socket), port_(port), watch_(watch) {}

  std::shared_ptr<Pages> pages_;
  int socket_;
  uint16_t port_;
  bool watch_;
};

}  // namespace vramtrace::viewer_data
