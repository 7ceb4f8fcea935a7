#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analyzer/report/json.h"
#include "analyzer/report/report.pb.h"

namespace vramtrace::report {
namespace {

TEST(Json, IntegersAreNumbersAndSurviveExactly) {
  v1::Report report;
  report.mutable_trace()->set_bytes(UINT64_MAX);
  report.add_devices()->mutable_at_peak()->mutable_identity()->set_mismatch(INT64_MIN);
  const auto json = nlohmann::json::parse(ToJson(report).dump());
  EXPECT_TRUE(json["trace"]["bytes"].is_number_unsigned());
  EXPECT_EQ(json["trace"]["bytes"].get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(json["devices"][0]["at_peak"]["identity"]["mismatch"].get<int64_t>(), INT64_MIN);
}

TEST(Json, FieldsKeepTheirNamesAndUnsetMessagesAreAbsent) {
  v1::Report report;
  report.add_notes()->set_text("say \"no\" \xe2\x82\xac");
  report.add_devices()->set_simulated(true);
  const auto json = nlohmann::json::parse(ToJson(report).dump());
  EXPECT_EQ(json["notes"][0]["text"], "say \"no\" \xe2\x82\xac");
  EXPECT_EQ(json["devices"][0]["simulated"], true);
  EXPECT_EQ(json["devices"][0]["block_allocations"], 0);  // zero is written, not left out
  EXPECT_FALSE(json["devices"][0].contains("out_of_memory"));
  EXPECT_TRUE(json["devices"][0]["step_peak_allocated"].is_array());
}

// Every field of every message of the report passes through the walker.
void Fill(google::protobuf::Message* message, int depth) {
  using google::protobuf::FieldDescriptor;
  const auto* reflection = message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || depth > 6) continue;
    Fill(field->is_repeated() ? reflection->AddMessage(message, field)
                              : reflection->MutableMessage(message, field),
         depth + 1);
  }
}

TEST(Json, EveryFieldOfTheReportIsWritten) {
  v1::Report report;
  Fill(&report, 0);
  const auto json = nlohmann::json::parse(ToJson(report).dump());
  EXPECT_EQ(json.size(), static_cast<size_t>(report.GetDescriptor()->field_count()));
  EXPECT_EQ(json["devices"][0].size(), static_cast<size_t>(v1::DeviceReport::descriptor()->field_count()));
  EXPECT_EQ(json["devices"][0]["at_peak"]["allocations"][0].size(),
            static_cast<size_t>(v1::Allocation::descriptor()->field_count()));
}

}  // namespace
}  // namespace vramtrace::report
