#include "analyzer/model/tables.h"

#include <algorithm>

#include "analyzer/model/parse_body.h"
#include "analyzer/trace/decode.h"

namespace vramtrace::model {
namespace {

using trace::Event;
using trace::LoadStatistics;
using trace::PacketKind;
using trace::Statistic;

// Every definition takes four bytes of file at least (a length, a packet tag, a message length, an id), so a
// larger id cannot be dense. The constant keeps a hostile trace of many gigabytes from reserving more.
uint32_t IdLimit(uint64_t file_bytes) {
  constexpr uint64_t kMost = uint64_t{1} << 26;
  return static_cast<uint32_t>(std::min(kMost, file_bytes / 4 + 1));
}

class TableBuilder {
 public:
  TableBuilder(Tables* tables, LoadStatistics* statistics, uint32_t limit)
      : tables_(tables), statistics_(statistics), limit_(limit) {}

  // `offset`: of the packet in the file. False when the packet's message does not parse.
  [[nodiscard]] bool Add(const Event& event, uint64_t offset) {
    offset_ = offset;
    switch (event.kind) {
      case PacketKind::kString:
        return Parse<v1::String>(event, &TableBuilder::AddString);
      case PacketKind::kCode:
        return Parse<v1::Code>(event, &TableBuilder::AddCode);
      case PacketKind::kFrame:
        return Parse<v1::Frame>(event, &TableBuilder::AddFrame);
      case PacketKind::kStack:
        return Parse<v1::Stack>(event, &TableBuilder::AddStack);
      case PacketKind::kBinary:
        return Parse<v1::Binary>(event, &TableBuilder::AddBinary);
      case PacketKind::kModule:
        return Parse<v1::Module>(event, &TableBuilder::AddModule);
      case PacketKind::kProcess:
        return Parse<v1::Process>(event, &TableBuilder::AddProcess);
      case PacketKind::kDevice:
        return Parse<v1::Device>(event, &TableBuilder::AddDevice);
      case PacketKind::kFeature:
        return Parse<v1::Feature>(event, &TableBuilder::AddFeature);
      case PacketKind::kLoss:
        return Parse<v1::Loss>(event, &TableBuilder::AddLoss);
      case PacketKind::kTrailer:
        return Parse<v1::Trailer>(event, &TableBuilder::AddTrailer);
      case PacketKind::kDropped:
        return Parse<v1::Dropped>(event, &TableBuilder::AddDropped);
      case PacketKind::kStepSummary:
        return Parse<v1::StepSummary>(event, &TableBuilder::AddStepSummary);
      default:
        return true;
    }
  }

  // Features name themselves by a string that may be defined after them.
  void Finish() {
    tables_->modules.Sort();
    std::stable_sort(
        tables_->step_summaries.begin(), tables_->step_summaries.end(),
        [](const StepSummaryRow& a, const StepSummaryRow& b) { return a.first_step < b.first_step; });
    std::stable_sort(
        tables_->dropped.begin(), tables_->dropped.end(),
        [](const DroppedRow& a, const DroppedRow& b) { return a.first_sequence < b.first_sequence; });
    for (const v1::Feature& feature : features_) {
      tables_->features[std::string(tables_->Text(StringId{feature.name()}))] = feature;
    }
  }

 private:
  template <typename Message>
  bool Parse(const Event& event, void (TableBuilder::*add)(const Event&, const Message&)) {
    Message message;
    if (!ParseBody(event, &message)) return false;
    (this->*add)(event, message);
    return true;
  }

  template <typename Id, typename Row>
  void AddRow(Table<Id, Row>* table, uint32_t id, Row row) {
    using Outcome = typename Table<Id, Row>::Outcome;
    const Outcome outcome = table->Add(id, std::move(row), limit_);
    if (outcome == Outcome::kBadId) statistics_->Add(Statistic::kBadTableId, 1, offset_);
    if (outcome == Outcome::kRepeated) statistics_->Add(Statistic::kRepeatedTableId, 1, offset_);
  }

  void AddString(const Event&, const v1::String& row) { AddRow(&tables_->strings, row.id(), row.text()); }
  void AddCode(const Event&, const v1::Code& row) {
    AddRow(&tables_->codes, row.id(),
           CodeRow{StringId{row.file()}, StringId{row.qualified_name()}, row.first_line()});
  }
  void AddFrame(const Event&, const v1::Frame& row) {
    AddRow(&tables_->frames, row.id(),
           FrameRow{CodeId{row.code()}, row.line(), row.module_object(), row.pc(), BinaryId{row.binary()}});
  }
  void AddStack(const Event&, const v1::Stack& row) {
    // Walks from a stack to its root end because of this.
    if (row.parent() >= row.id()) return statistics_->Add(Statistic::kBadTableId, 1, offset_);
    AddRow(&tables_->stacks, row.id(), StackRow{StackId{row.parent()}, FrameId{row.frame()}});
  }
  void AddBinary(const Event&, const v1::Binary& row) {
    AddRow(&tables_->binaries, row.id(),
           BinaryRow{StringId{row.path()}, row.build_id(), row.load_bias(), row.begin(), row.end()});
  }
  void AddModule(const Event& event, const v1::Module& row) {
    tables_->modules.Add(row.object(),
                         {event.sequence, StringId{row.path()}, StringId{row.class_name()}, row.parent()});
  }
  void AddProcess(const Event&, const v1::Process& row) {
    // Lists are replaced, not appended to: the second packet may repeat the first.
    if (row.argument_size() > 0) tables_->process.clear_argument();
    if (row.environment_size() > 0) tables_->process.clear_environment();
    tables_->process.MergeFrom(row);
  }
  void AddDevice(const Event&, const v1::Device& row) { tables_->devices[row.device()].MergeFrom(row); }
  void AddFeature(const Event&, const v1::Feature& row) { features_.push_back(row); }
  void AddLoss(const Event&, const v1::Loss& row) { tables_->losses.push_back(row); }
  void AddDropped(const Event&, const v1::Dropped& row) {
    tables_->dropped.push_back(
        {row.first_sequence(), row.last_sequence(), row.events(), row.first_step(), row.steps()});
  }
  void AddStepSummary(const Event&, const v1::StepSummary& row) {
    tables_->step_summaries.push_back({row.first_step(), row.steps(), row.device(), row.peak(), row.low(),
                                       row.reserved(), row.driver(), row.retries()});
  }
  void AddTrailer(const Event&, const v1::Trailer& row) {
    tables_->trailer = row;
    tables_->has_trailer = true;
  }

  Tables* tables_;
  LoadStatistics* statistics_;
  uint32_t limit_;
  uint64_t offset_ = 0;
  std::vector<v1::Feature> features_;
};

}  // namespace

bool Tables::Simulated(uint32_t device) const {
  if (process.simulated()) return true;
  // The simulated device's UUID spells "vramtrace-sim" (preload/simulator/core/device.cpp).
  constexpr std::string_view kSimulatedUuid = "GPU-7672616d-7472-6163-652d-73696d";
  const auto found = devices.find(device);
  return found != devices.end() && std::string_view(found->second.uuid()).starts_with(kSimulatedUuid);
}

void ModuleTable::Sort() {
  for (auto& [object, names] : by_object_) {
    std::stable_sort(names.begin(), names.end(),
                     [](const ModuleName& a, const ModuleName& b) { return a.sequence < b.sequence; });
  }
}

const ModuleName* ModuleTable::Find(uint64_t object, uint64_t sequence) const {
  const auto found = by_object_.find(object);
  if (found == by_object_.end()) return nullptr;
  const std::vector<ModuleName>& names = found->second;
  auto after = std::upper_bound(names.begin(), names.end(), sequence,
                                [](uint64_t value, const ModuleName& name) { return value < name.sequence; });
  return after == names.begin() ? &names.front() : &*(after - 1);
}

std::shared_ptr<const Tables> ReadTables(trace::TraceFile& file) {
  auto tables = std::make_shared<Tables>();
  TableBuilder builder(tables.get(), &file.statistics(), IdLimit(file.size()));
  std::vector<std::byte> buffer;
  for (const trace::ChunkPlace& place : file.chunks()) {
    file.ReadPackets(place, &buffer);
    trace::PacketCursor packets(buffer);
    trace::ChunkClock clock{place.fields.base_sequence, place.fields.base_time_ns, place.fields.base_address,
                            ThreadId{place.fields.thread}};
    std::span<const std::byte> packet;
    while (packets.Next(&packet)) {
      Event event;
      const std::string_view bytes(reinterpret_cast<const char*>(packet.data()), packet.size());
      if (trace::DecodeHead(bytes, &clock, &event) != trace::DecodeStatus::kDecoded) continue;
      const uint64_t offset =
          place.offset + place.fields.header_bytes + static_cast<uint64_t>(packet.data() - buffer.data());
      if (!builder.Add(event, offset)) file.statistics().Add(Statistic::kMalformedPacket, 1, offset);
    }
  }
  builder.Finish();
  if (!tables->has_trailer) file.statistics().Add(Statistic::kNoTrailer);
  return tables;
}

}  // namespace vramtrace::model
