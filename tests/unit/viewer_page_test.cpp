// The page: what is in it can be read back, and nothing of a trace can leave its element.
#include <gmock/gmock.h>
#include <zlib.h>

#include "analyzer/viewer_data/build.h"
#include "analyzer/viewer_data/page.h"
#include "tests/unit/analyzer_files.h"
#include "tests/unit/viewer_data_file.h"

namespace vramtrace::viewer_data {
namespace {

using testing::TraceBuilder;

std::string Gunzip(const std::string& bytes, size_t size) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(size + 1, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST(PageTest, Base64IsThatOfTheStandard) {
  // RFC 4648, section 10.
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foob"), "Zm9vYg==");
  EXPECT_EQ(Base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Base64("\xff\xff\xfe"), "///+");
}

TEST(PageTest, GzipComesBackAndIsTheSameEachTime) {
  for (const size_t size : {0UL, 1UL, 65'535UL, 1'000'000UL}) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(i * 2654435761U >> 7);
    const std::string packed = Gzip(bytes);
    EXPECT_EQ(Gunzip(packed, size), bytes);
    EXPECT_EQ(packed, Gzip(bytes));
  }
}

class HostilePageTest : public testing::FileTest {};

TEST_F(HostilePageTest, NamesStayInTheDataElement) {
  constexpr const char* kName = "</script><script>alert(1)</script><img src=x onerror=alert(2)>";
  TraceBuilder builder;
  const uint32_t stack = builder.Stack({{kName, 7, kName, 0}});
  builder.Allocate({.address = TraceBuilder::kBaseAddress, .bytes = 512, .requested = 500, .stack = stack});
  builder.Label(v1::Label::KIND_PARAMETER, TraceBuilder::kBaseAddress, 500, kName);
  v1::Process process;
  process.add_argument(kName);
  builder.AddProcess(process);
  const auto data = ViewerData::Build(Write(&builder));
  ASSERT_TRUE(data.ok());
  const std::string bytes = data.value()->Write({}).bytes;
  const testing::DataFile file(bytes);
  EXPECT_THAT(file.Text(file.Column("block.title").at(0)), ::testing::HasSubstr("</script><script>alert(1)"));

  const std::string page = MakePage({bytes});
  if (PageTemplate().empty()) {
    EXPECT_EQ(page, "");
    GTEST_SKIP() << "this build has no page";
  }
  EXPECT_THAT(page, ::testing::Not(::testing::HasSubstr("alert(")));
  EXPECT_THAT(page, ::testing::HasSubstr(Base64(Gzip(bytes))));
  EXPECT_THAT(page, ::testing::Not(::testing::HasSubstr("@VRAMTRACE_")));
}

TEST(PageTest, ServedPageMayAskItsOwnServerOnly) {
  const std::string page = MakeServedPage();
  if (page.empty()) GTEST_SKIP() << "this build has no page";
  EXPECT_THAT(page, ::testing::HasSubstr("; connect-src 'self'\""));
  EXPECT_THAT(page, ::testing::Not(::testing::HasSubstr("@VRAMTRACE_")));
  EXPECT_THAT(MakePage({""}), ::testing::Not(::testing::HasSubstr("connect-src")));
}

TEST(PageTest, TemplateLetsNothingElseRun) {
  const std::string page(PageTemplate());
  if (page.empty()) GTEST_SKIP() << "this build has no page";
  EXPECT_THAT(page, ::testing::HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, ::testing::Not(::testing::HasSubstr("unsafe-")));
  EXPECT_THAT(page, ::testing::Not(::testing::HasSubstr("src=\"http")));
  EXPECT_THAT(page, ::testing::Not(::testing::HasSubstr("@STYLE@")));
}

}  // namespace
}  // namespace vramtrace::viewer_data
