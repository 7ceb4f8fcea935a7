// What the viewer's server answers, and to whom.
#include <gmock/gmock.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "analyzer/viewer_data/serve.h"
#include "tests/support/training_run.h"
#include "tests/unit/analyzer_files.h"
#include "tests/unit/viewer_data_file.h"

namespace vramtrace::viewer_data {
namespace {

using testing::DataFile;
using testing::TraceBuilder;
using testing::TrainingOptions;
using testing::TrainingRun;

constexpr const char* kHost = "127.0.0.1:8700";

std::string Gunzip(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out;
  std::string buffer(1 << 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(buffer, 0, buffer.size() - stream.avail_out);
  }
  EXPECT_EQ(status, Z_STREAM_END);
  inflateEnd(&stream);
  return out;
}

class PagesTest : public testing::FileTest {
 protected:
  std::string WriteRun(int steps) {
    TrainingOptions options;
    options.steps = steps;
    TraceBuilder builder;
    TrainingRun(options).Play(&builder);
    return Write(&builder);
  }
  std::unique_ptr<Pages> OpenRun(const FileOptions& options = {}) {
    auto pages = Pages::Open({{WriteRun(3), false, {}}}, options);
    EXPECT_TRUE(pages.ok()) << pages.error().Sentence();
    return std::move(pages.value());
  }
};

TEST_F(PagesTest, OnlyTheTokenAndThisMachineAreAnswered) {
  const auto pages = OpenRun();
  const std::string path = "/" + pages->token() + "/traces";
  EXPECT_EQ(pages->token().size(), 32U);
  EXPECT_EQ(pages->Answer("GET", path, kHost).status, 200);
  EXPECT_EQ(pages->Answer("GET", path, "localhost:9").status, 200);  // a tunnel's port
  EXPECT_EQ(pages->Answer("GET", path, "evil.example:8700").status, 403);
  EXPECT_EQ(pages->Answer("GET", path, "127.0.0.1.evil.example").status, 403);
  EXPECT_EQ(pages->Answer("GET", path, "").status, 403);
  EXPECT_EQ(pages->Answer("POST", path, kHost).status, 405);
  for (const std::string wrong : {"/", "", "//", "/traces", "/0/traces"}) {
    EXPECT_EQ(pages->Answer("GET", wrong, kHost).status, 403) << wrong;
  }
  EXPECT_EQ(pages->Answer("GET", "/" + pages->token(), kHost).status, 403);
  EXPECT_NE(pages->token(), OpenRun()->token());
}

TEST_F(PagesTest, SaysWhatItDoesNotHave) {
  const auto pages = OpenRun();
  const std::string root = "/" + pages->token();
  for (const std::string missing :
       {"/trace/1", "/trace/", "/trace/x", "/trace/0/", "/trace/0/other", "/nothing"}) {
    EXPECT_EQ(pages->Answer("GET", root + missing, kHost).status, 404) << missing;
  }
  for (const std::string bad :
       {"", "device=0&from=0&to=1", "device=0&mode=most&from=0&to=1", "device=x&mode=alive&from=0&to=1",
        "device=0&mode=alive&from=-1&to=1", "device=0&mode=alive&from=0&to=99999999999"}) {
    EXPECT_EQ(pages->Answer("GET", root + "/trace/0/blocks?" + bad, kHost).status, 400) << bad;
  }
}

TEST_F(PagesTest, SelectionsAreThoseOfTheWholeTable) {
  const auto pages = OpenRun({.blocks = 1});
  const std::string root = "/" + pages->token();
  const DataFile kept(Gunzip(pages->Answer("GET", root + "/trace/0", kHost).body));
  EXPECT_FALSE(kept.header()["complete"]);
  EXPECT_TRUE(kept.header()["served"]);
  auto all = ViewerData::Build(WriteRun(3));
  ASSERT_TRUE(all.ok());
  const DataFile whole(all.value()->Write({}).bytes);
  const std::vector<double> allocated = whole.Column("block.allocated");
  const std::vector<double> freed = whole.Column("block.freed");
  for (const std::string mode : {"alive", "allocated", "kept", "freed", "seen"}) {
    constexpr double kFrom = 20;
    constexpr double kTo = 60;
    const Response answer =
        pages->Answer("GET", root + "/trace/0/blocks?device=0&mode=" + mode + "&from=20&to=60", kHost);
    ASSERT_EQ(answer.status, 200);
    const DataFile selected(Gunzip(answer.body));
    std::vector<double> expected;
    for (size_t i = 0; i < allocated.size(); ++i) {
      const bool alive = allocated[i] <= kTo && kTo < freed[i];
      const bool made = allocated[i] >= kFrom && allocated[i] <= kTo;
      const bool gone = freed[i] >= kFrom && freed[i] <= kTo;
      const bool seen = allocated[i] <= kTo && freed[i] >= kFrom;
      if (mode == "alive"       ? alive
          : mode == "allocated" ? made
          : mode == "kept"      ? made && alive
          : mode == "seen"      ? seen
                                : gone) {
        expected.push_back(allocated[i]);
      }
    }
    EXPECT_FALSE(expected.empty()) << mode;
    EXPECT_EQ(selected.Column("block.allocated"), expected) << mode;
  }
}

TEST_F(PagesTest, ReadsATraceAnewWhenItHasGrown) {
  const std::string path = WriteRun(2);
  auto opened = Pages::Open({{path, false, {}}}, {});
  ASSERT_TRUE(opened.ok());
  Pages& pages = *opened.value();
  const std::string root = "/" + pages.token();
  const std::string version = pages.Answer("GET", root + "/version", kHost).body;
  const std::string before = pages.Answer("GET", root + "/trace/0", kHost).body;
  EXPECT_FALSE(pages.Refresh());
  TrainingOptions options;
  options.steps = 5;
  TraceBuilder builder;
  TrainingRun(options).Play(&builder);
  builder.Write(path);
  std::filesystem::last_write_time(path,
                                   std::filesystem::file_time_type::clock::now() + std::chrono::seconds(2));
  EXPECT_TRUE(pages.Refresh());
  EXPECT_NE(pages.Answer("GET", root + "/version", kHost).body, version);
  EXPECT_NE(pages.Answer("GET", root + "/trace/0", kHost).body, before);
  // What cannot be read leaves what there was.
  std::ofstream(path, std::ios::trunc) << "broken";
  std::filesystem::last_write_time(path,
                                   std::filesystem::file_time_type::clock::now() + std::chrono::seconds(4));
  EXPECT_FALSE(pages.Refresh());
  EXPECT_EQ(pages.Answer("GET", root + "/trace/0", kHost).status, 200);
}

TEST_F(PagesTest, TakenPortIsSaidWithWhatToDo) {
  const std::shared_ptr<Pages> pages = OpenRun();
  auto first = Server::Listen(pages, {});
  ASSERT_TRUE(first.ok()) << first.error().Sentence();
  const uint16_t port = first.value()->port();
  EXPECT_EQ(first.value()->Address(),
            "http://127.0.0.1:" + std::to_string(port) + "/" + pages->token() + "/");
  auto second = Server::Listen(pages, {.port = port, .watch = false});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().Sentence(), ::testing::HasSubstr("--port"));
  auto third = Server::Listen(pages, {});
  ASSERT_TRUE(third.ok());
  EXPECT_NE(third.value()->port(), port);
}

}  // namespace
}  // namespace vramtrace::viewer_data
