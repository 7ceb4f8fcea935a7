#include <gmock/gmock.h>

#include "analyzer/model/tables.h"
#include "tests/unit/analyzer_files.h"

namespace vramtrace::model {
namespace {

using testing::TraceBuilder;
using trace::Statistic;

class TablesTest : public testing::FileTest {
 protected:
  std::shared_ptr<const Tables> Read(TraceBuilder* builder) {
    const auto file = trace::TraceFile::Open(Write(builder));
    EXPECT_TRUE(file.ok());
    file_ = file.value();
    return ReadTables(*file_);
  }
  std::shared_ptr<trace::TraceFile> file_;
};

TEST_F(TablesTest, StacksLeadBackToTheirTexts) {
  TraceBuilder builder;
  const uint32_t stack = builder.Stack({{"a.py", 1, "main"}, {"b.py", 22, "Model.forward", 0x10}});
  const auto tables = Read(&builder);
  const StackRow& row = tables->stacks[StackId{stack}];
  EXPECT_NE(row.parent, StackId::kNone);
  const FrameRow& frame = tables->frames[row.frame];
  EXPECT_EQ(frame.line, 22U);
  EXPECT_EQ(frame.module_object, 0x10U);
  EXPECT_EQ(tables->Text(tables->codes[frame.code].qualified_name), "Model.forward");
}

TEST_F(TablesTest, UndefinedIdsAnswerEmptyRows) {
  TraceBuilder builder;
  builder.String("only");
  const auto tables = Read(&builder);
  EXPECT_EQ(tables->Text(StringId{12345}), "");
  EXPECT_EQ(tables->stacks[StackId{9}].parent, StackId::kNone);
  EXPECT_FALSE(tables->strings.Has(StringId{2}));
}

TEST_F(TablesTest, HugeIdIsRefusedRatherThanReserved) {
  TraceBuilder builder;
  v1::Packet packet;
  packet.mutable_string()->set_id(UINT32_MAX);
  packet.mutable_string()->set_text("x");
  builder.Add(packet, true);
  const auto tables = Read(&builder);
  EXPECT_LT(tables->strings.size(), 100U);
  EXPECT_EQ(file_->statistics().Get(Statistic::kBadTableId).count, 1U);
}

TEST_F(TablesTest, StackWhoseParentIsYoungerIsRefused) {
  TraceBuilder builder;
  v1::Packet packet;
  packet.mutable_stack()->set_id(1);
  packet.mutable_stack()->set_parent(1);
  builder.Add(packet, true);
  const auto tables = Read(&builder);
  EXPECT_FALSE(tables->stacks.Has(StackId{1}));
  EXPECT_EQ(file_->statistics().Get(Statistic::kBadTableId).count, 1U);
}

TEST_F(TablesTest, FirstDefinitionOfAnIdHolds) {
  TraceBuilder builder;
  builder.String("first");
  v1::Packet packet;
  packet.mutable_string()->set_id(1);
  packet.mutable_string()->set_text("second");
  builder.Add(packet, true);
  const auto tables = Read(&builder);
  EXPECT_EQ(tables->Text(StringId{1}), "first");
  EXPECT_EQ(file_->statistics().Get(Statistic::kRepeatedTableId).count, 1U);
}

TEST_F(TablesTest, ProcessPacketsMergeAndListsAreReplaced) {
  TraceBuilder builder;
  v1::Process first;
  first.set_pid(7);
  first.add_argument("python");
  builder.AddProcess(first);
  v1::Process second;
  second.set_torch_version("2.15.0");
  second.add_argument("python3");
  builder.AddProcess(second);
  const auto tables = Read(&builder);
  EXPECT_EQ(tables->process.pid(), 7U);
  EXPECT_EQ(tables->process.torch_version(), "2.15.0");
  ASSERT_EQ(tables->process.argument_size(), 1);
  EXPECT_EQ(tables->process.argument(0), "python3");
}

TEST(ModuleTable, NewestNameBeforeAnEventHolds) {
  ModuleTable modules;
  modules.Add(1, {20, StringId{2}, {}, 0});
  modules.Add(1, {10, StringId{1}, {}, 0});
  modules.Sort();
  EXPECT_EQ(modules.Find(1, 15)->path, StringId{1});
  EXPECT_EQ(modules.Find(1, 20)->path, StringId{2});
  // Named after the event only: that name is better than none.
  EXPECT_EQ(modules.Find(1, 5)->path, StringId{1});
  EXPECT_EQ(modules.Find(2, 5), nullptr);
}

}  // namespace
}  // namespace vramtrace::model
