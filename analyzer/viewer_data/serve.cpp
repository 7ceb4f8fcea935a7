#include "analyzer/viewer_data/serve.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

namespace vramtrace::viewer_data {
namespace {

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    default:
      return "Method Not Allowed";
  }
}

std::string Head(const Response& response) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Cache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
      response.status, ReasonOf(response.status),
      response.type.empty() ? "text/plain; charset=utf-8" : response.type, response.body.size(),
      response.compressed ? "Content-Encoding: gzip\r\n" : "");
}

void Send(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

// The request's lines up to the empty one; empty when none came in time or they are too long.
std::string ReadHead(int socket) {
  constexpr size_t kLongest = 16 * 1024;
  std::string head;
  char buffer[2048];
  while (head.size() < kLongest) {
    const ssize_t got = ::recv(socket, buffer, sizeof buffer, 0);
    if (got <= 0) return {};
    head.append(buffer, static_cast<size_t>(got));
    if (head.find("\r\n\r\n") != std::string::npos) return head;
  }
  return {};
}

// The value of a header, whose name is compared without case.
std::string_view HeaderOf(std::string_view head, std::string_view name) {
  for (size_t at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at + 2)) {
    const std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
    if (line.size() <= name.size() || line[name.size()] != ':') continue;
    if (::strncasecmp(line.data(), name.data(), name.size()) != 0) continue;
    std::string_view value = line.substr(name.size() + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    return value;
  }
  return {};
}

void AnswerOne(Pages* pages, int socket) {
  const timeval patience{10, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const std::string head = ReadHead(socket);
  const std::string_view line = std::string_view(head).substr(0, head.find("\r\n"));
  const size_t first = line.find(' ');
  const size_t second = line.rfind(' ');
  if (first != std::string_view::npos && second > first) {
    const Response response = pages->Answer(line.substr(0, first), line.substr(first + 1, second - first - 1),
                                            HeaderOf(head, "Host"));
    Send(socket, Head(response));
    Send(socket, response.body);
  }
  ::close(socket);
}

// A listening socket; -1 and errno.
int TryPort(uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(socket, 16) == 0) {
    return socket;
  }
  const int error = errno;
  ::close(socket);
  errno = error;
  return -1;
}

}  // namespace

trace::Result<std::unique_ptr<Server>> Server::Listen(std::shared_ptr<Pages> pages,
                                                      const ServeOptions& options) {
  constexpr uint16_t kTries = 32;
  const uint16_t first = options.port != 0 ? options.port : kFirstPort;
  const uint16_t tries = options.port != 0 ? 1 : kTries;
  for (uint16_t i = 0; i < tries; ++i) {
    const auto port = static_cast<uint16_t>(first + i);
    const int socket = TryPort(port);
    if (socket >= 0)
      return std::unique_ptr<Server>(new Server(std::move(pages), socket, port, options.watch));
    if (errno != EADDRINUSE) break;
  }
  return trace::Error{
      fmt::format("127.0.0.1:{}", first), std::nullopt,
      fmt::format("cannot be listened on ({}); choose another with --port", std::strerror(errno))};
}

Server::~Server() { ::close(socket_); }

std::string Server::Address() const { return fmt::format("http://127.0.0.1:{}/{}/", port_, pages_->token()); }

// A thread a connection: a browser opens some before it knows what to ask for.
void Server::Run() {
  constexpr int kMilliseconds = 1000;
  for (;;) {
    pollfd ready{socket_, POLLIN, 0};
    if (::poll(&ready, 1, watch_ ? kMilliseconds : -1) > 0) {
      const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection >= 0)
        std::thread([pages = pages_, connection] { AnswerOne(pages.get(), connection); }).detach();
    }
    if (watch_) pages_->Refresh();
  }
}

}  // namespace vramtrace::viewer_data
