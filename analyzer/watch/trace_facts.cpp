#include "analyzer/watch/trace_facts.h"

#include <algorithm>
#include <charconv>

#include "analyzer/model/parse_body.h"
#include "preload/trace/vramtrace.pb.h"

namespace vramtrace::watch {
namespace {

using trace::Event;
using trace::PacketKind;

double Seconds(uint64_t from, uint64_t to) { return to > from ? static_cast<double>(to - from) / 1e9 : 0; }

// The number behind `key=` in "workers=4 pinned=1".
std::optional<uint64_t> Number(std::string_view text, std::string_view key) {
  size_t at = 0;
  while ((at = text.find(key, at)) != std::string_view::npos) {
    const bool starts = at == 0 || text[at - 1] == ' ';
    const size_t value = at + key.size() + 1;
    if (starts && value <= text.size() && text[value - 1] == '=') {
      uint64_t number = 0;
      const auto [end, error] = std::from_chars(text.data() + value, text.data() + text.size(), number);
      if (error == std::errc()) return number;
    }
    at += key.size();
  }
  return std::nullopt;
}

}  // namespace

std::string_view TraceFacts::Text(uint32_t id) const {
  const auto found = strings_.find(id);
  return found == strings_.end() ? std::string_view() : std::string_view(found->second);
}

uint64_t* TraceFacts::ClassOf(int kind) {
  switch (kind) {
    case v1::Label::KIND_PARAMETER:
    case v1::Label::KIND_BUFFER:
      return &classes_.weights;
    case v1::Label::KIND_GRADIENT:
      return &classes_.gradients;
    case v1::Label::KIND_OPTIMIZER_STATE:
      return &classes_.optimizer;
    default:
      return &classes_.other;
  }
}

void TraceFacts::Add(const Event& event) {
  switch (event.kind) {
    case PacketKind::kBlockAllocate:
      return AddBlock(event);
    case PacketKind::kBlockFree:
      return RemoveBlock(event);
    case PacketKind::kDriverAllocate:
    case PacketKind::kDriverFree:
      return AddDriverCall(event);
    case PacketKind::kMemoryQuery:
      return AddQuery(event);
    case PacketKind::kString: {
      v1::String row;
      // Long texts are names of modules and files, which nothing here asks for.
      if (model::ParseBody(event, &row) && row.text().size() < 256) strings_[row.id()] = row.text();
      return;
    }
    case PacketKind::kLabel:
      return AddLabel(event);
    case PacketKind::kStep:
      return AddStep(event);
    case PacketKind::kPhaseMark:
      return AddData(event);
    case PacketKind::kInputTensor:
      return AddInput(event);
    case PacketKind::kProcess:
      return AddProcess(event);
    case PacketKind::kDevice: {
      v1::Device device;
      if (!model::ParseBody(event, &device)) return;
      cards_[device.device()].total = device.total_bytes();
      cards_[device.device()].uuid = device.uuid();
      return;
    }
    case PacketKind::kOutOfMemory:
      out_of_memory_ = true;
      return;
    case PacketKind::kHostAllocate:
      if (event.result == 0) pinned_bytes_ += event.bytes;
      return;
    default:
      return;
  }
}

void TraceFacts::AddBlock(const Event& event) {
  CardMemory& card = cards_[trace::Raw(event.device)];
  card.allocated += event.bytes;
  if (event.has_totals && event.reserved_total != 0) card.reserved = event.reserved_total;
  Block& block = blocks_[event.address];
  if (block.bytes != 0) *ClassOf(block.kind) -= block.bytes;  // its free was lost
  block = {event.bytes, v1::Label::KIND_UNKNOWN};
  classes_.other += event.bytes;
  ++step_.blocks;
  step_.block_bytes += event.bytes;
}

void TraceFacts::RemoveBlock(const Event& event) {
  const auto found = blocks_.find(event.address);
  if (found == blocks_.end()) return;
  CardMemory& card = cards_[trace::Raw(event.device)];
  card.allocated -= std::min(card.allocated, found->second.bytes);
  *ClassOf(found->second.kind) -= found->second.bytes;
  blocks_.erase(found);
}

void TraceFacts::AddLabel(const Event& event) {
  v1::Label label;
  if (!model::ParseBody(event, &label)) return;
  const auto found = blocks_.find(event.base_address + static_cast<uint64_t>(label.address_delta()));
  if (found == blocks_.end()) return;  // inside a block, or on the host
  *ClassOf(found->second.kind) -= found->second.bytes;
  found->second.kind = label.kind();
  *ClassOf(label.kind()) += found->second.bytes;
}

// After a refusal PyTorch's allocator gives its cache back and asks again: a retry, or an out of memory.
void TraceFacts::AddDriverCall(const Event& event) {
  const bool refused = event.kind == PacketKind::kDriverAllocate && event.result == trace::kResultOutOfMemory;
  if (refused) {
    ++step_.retries;
    ++retries_;
  }
  v1::DriverAllocate call;
  if (event.kind == PacketKind::kDriverAllocate && !event.body.empty() && model::ParseBody(event, &call)) {
    step_.allocator += static_cast<double>(call.duration_ns()) / 1e9;
  }
}

void TraceFacts::AddQuery(const Event& event) {
  CardMemory& card = cards_[trace::Raw(event.device)];
  if (event.total_bytes < event.free_bytes) return;
  card.total = event.total_bytes;
  card.used = event.total_bytes - event.free_bytes;
  card.used_most = std::max(card.used_most, card.used);
}

// Optimizers of one step share its number: the step lasts to the last of them, which is known once the next
// number comes.
void TraceFacts::AddStep(const Event& event) {
  v1::Step step;
  if (!model::ParseBody(event, &step) || step.edge() != v1::Step::EDGE_OPTIMIZER_END) return;
  if (step_number_ != step.number()) ++completed_;
  if (step_number_ == step.number() && !steps_.empty()) {
    steps_.back().seconds += Seconds(*step_began_, event.time_ns);
  } else if (step_began_) {
    step_.seconds = Seconds(*step_began_, event.time_ns);
    steps_.push_back(step_);
  }
  step_ = {};
  step_began_ = event.time_ns;
  step_number_ = step.number();
}

void TraceFacts::AddData(const Event& event) {
  v1::PhaseMark mark;
  if (!model::ParseBody(event, &mark)) return;
  const std::string_view name = Text(mark.name());
  if (name != "data" && !name.starts_with("data ")) return;
  if (!mark.end()) {
    data_began_ = event.time_ns;
    loader_.seen = true;
    const std::string_view detail = name.substr(4);
    if (!detail.empty()) {
      loader_.workers = static_cast<int>(Number(detail, "workers").value_or(0));
      loader_.pinned = Number(detail, "pinned").value_or(0) != 0;
      loader_.batch = Number(detail, "batch").value_or(0);
      loader_.length = Number(detail, "length").value_or(0);
      loader_.batches = 0;
      ++loader_.epochs;
    }
    ++loader_.batches;
  } else if (data_began_) {
    step_.data += Seconds(*data_began_, event.time_ns);
    data_began_.reset();
  }
}

void TraceFacts::AddInput(const Event& event) {
  v1::InputTensor input;
  if (!model::ParseBody(event, &input)) return;
  if (step_.batch == 0 && input.shape_size() > 0) step_.batch = static_cast<uint64_t>(input.shape(0));
  step_.input_bytes += input.bytes();
}

void TraceFacts::AddProcess(const Event& event) {
  v1::Process process;
  if (!model::ParseBody(event, &process)) return;
  if (process.pid() != 0) pid_ = process.pid();
  if (process.world_size() != 0) world_size_ = process.world_size();
  simulated_ = simulated_ || process.simulated();
}

}  // namespace vramtrace::watch
