#include "analyzer/estimate/phases.h"

#include <algorithm>
#include <numeric>

namespace vramtrace::estimate {
namespace {

constexpr int kNone = -1;

// Layers that are run again together.
struct Segment {
  int first = 0;
  int last = 0;
  int input = kNone;
};

class Walker {
 public:
  Walker(const Tape& tape, const WalkOptions& options);
  Walk Run();

 private:
  struct Gradient {
    uint64_t bytes = 0;
    int holders = 0;
    Class kind = Class::kTemporary;
  };

  void Take(Class kind, uint64_t bytes) { live_[kind] += bytes; }
  void Give(Class kind, uint64_t bytes) { live_[kind] -= bytes; }
  void Note(Memory& peak, uint64_t temporary, Class kind);

  void Make(int storage);
  void Release(int storage);  // the forward is done with it
  void Hold(int storage) { ++holds_[storage]; }
  void Drop(int storage);
  void FreeIfUnused(int storage);

  void Forward();
  void RunForward(int index, bool keep, int dies_by);
  void Replay(const Segment& segment);
  void Backward();
  void RunBackward(int index);
  void Attach(int storage, int gradient);
  void Detach(int gradient);
  [[nodiscard]] int NewGradient(uint64_t bytes, Class kind);
  void MakeParameterGradient(int parameter, bool cast, std::vector<std::pair<Class, uint64_t>>& passing);

  void EnterUnit(int block);
  void LeaveUnit(int block, bool backward);
  [[nodiscard]] uint64_t GradientBytes(const Parameter& parameter, Dtype dtype) const;

  const Tape& tape_;
  const WalkOptions& options_;
  std::vector<Segment> segments_;
  std::vector<int> segment_of_;  // by operation
  std::vector<int> block_starts_;
  std::vector<std::vector<int>> dying_;  // by operation
  std::vector<bool> alive_;
  std::vector<bool> used_;  // by the forward or a replay
  std::vector<int> holds_;
  std::vector<int> gradient_of_;
  std::vector<Gradient> gradients_;
  std::vector<bool> has_gradient_;    // by parameter
  std::vector<bool> used_before_;     // in this backward
  std::vector<uint64_t> unit_bytes_;  // gathered parameters, by block; the last one: outside of blocks
  std::vector<uint64_t> unit_gradients_;
  Memory live_;
  Walk walk_;
};

Walker::Walker(const Tape& tape, const WalkOptions& options)
    : tape_(tape),
      options_(options),
      segment_of_(tape.operations().size(), kNone),
      dying_(tape.operations().size()),
      alive_(tape.storages().size()),
      used_(tape.storages().size()),
      holds_(tape.storages().size()),
      gradient_of_(tape.storages().size(), kNone),
      has_gradient_(tape.parameters().size()),
      used_before_(tape.parameters().size()),
      unit_bytes_(tape.blocks().size() + 1),
      unit_gradients_(tape.blocks().size() + 1) {
  for (size_t storage = 0; storage < tape.storages().size(); ++storage) {
    dying_[tape.storages()[storage].last_use].push_back(static_cast<int>(storage));
  }
  if (options.checkpointing && tape.options().training) {
    const auto step = static_cast<size_t>(std::max(options.layers_per_checkpoint, 1));
    for (size_t at = 0; at < tape.blocks().size(); at += step) {
      const Block& first = tape.blocks()[at];
      const Block& last = tape.blocks()[std::min(at + step, tape.blocks().size()) - 1];
      for (int index = first.first; index <= last.last; ++index) {
        segment_of_[index] = static_cast<int>(segments_.size());
      }
      segments_.push_back({first.first, last.last, first.input});
    }
  }
  for (const Parameter& parameter : tape.parameters()) {
    const size_t unit =
        parameter.block == kNone ? tape.blocks().size() : static_cast<size_t>(parameter.block);
    unit_bytes_[unit] += parameter.elements * SizeOf(tape.options().compute);
  }
}

void Walker::Note(Memory& peak, uint64_t temporary, Class kind) {
  live_[kind] += temporary;
  if (live_.Total() > peak.Total()) peak = live_;
  live_[kind] -= temporary;
}

void Walker::Make(int storage) {
  if (alive_[storage]) return;
  alive_[storage] = true;
  used_[storage] = true;
  Take(tape_.storages()[storage].kind, tape_.storages()[storage].bytes);
}

void Walker::FreeIfUnused(int storage) {
  if (!alive_[storage] || used_[storage] || holds_[storage] > 0) return;
  alive_[storage] = false;
  Give(tape_.storages()[storage].kind, tape_.storages()[storage].bytes);
}

void Walker::Release(int storage) {
  used_[storage] = false;
  FreeIfUnused(storage);
}

void Walker::Drop(int storage) {
  --holds_[storage];
  FreeIfUnused(storage);
}

// The unit's parameters are gathered; the next unit's are on their way (prefetch).
void Walker::EnterUnit(int block) {
  if (!options_.shards_parameters) return;
  const size_t unit = block == kNone ? tape_.blocks().size() : static_cast<size_t>(block);
  Take(Class::kUnsharded, unit_bytes_[unit] * (block == kNone ? 1 : 2));
}

void Walker::LeaveUnit(int block, bool backward) {
  const size_t unit = block == kNone ? tape_.blocks().size() : static_cast<size_t>(block);
  if (options_.shards_parameters) Give(Class::kUnsharded, unit_bytes_[unit] * (block == kNone ? 1 : 2));
  if (!backward) return;
  Give(Class::kUnsharded, unit_gradients_[unit]);
  unit_gradients_[unit] = 0;
}

// `dies_by`: in a replay, what lives on after the segment in the forward goes with its last operation.
void Walker::RunForward(int index, bool keep, int dies_by) {
  const Operation& operation = tape_.operations()[index];
  for (const int storage : operation.makes) Make(storage);
  Memory& peak = dies_by == kNone ? walk_.forward : walk_.backward;
  Note(peak, operation.forward_temporary, operation.temporary_kind);
  if (keep) {
    for (const int storage : operation.keeps) Hold(storage);
  }
  for (const int storage : dying_[index]) Release(storage);
}

void Walker::Forward() {
  EnterUnit(kNone);
  const std::vector<Block>& blocks = tape_.blocks();
  size_t next_block = 0;
  int open = kNone;
  for (int index = 0; index < static_cast<int>(tape_.operations().size()); ++index) {
    if (next_block < blocks.size() && blocks[next_block].first == index) {
      open = static_cast<int>(next_block++);
      EnterUnit(open);
    }
    const int segment = segment_of_[index];
    if (segment != kNone && segments_[segment].first == index) {
      const int input = segments_[segment].input;
      if (input != kNone && !options_.checkpoints_on_host) Hold(input);
    }
    RunForward(index, tape_.options().training && segment == kNone, kNone);
    if (open != kNone && blocks[open].last == index) {
      LeaveUnit(open, false);
      open = kNone;
    }
  }
  walk_.forward_end = live_;
}

void Walker::Replay(const Segment& segment) {
  if (segment.input != kNone && options_.checkpoints_on_host) {
    Make(segment.input);
    Hold(segment.input);
    used_[segment.input] = false;
  }
  std::vector<int> outlasting;
  for (int index = segment.first; index <= segment.last; ++index) {
    for (const int storage : tape_.operations()[index].makes) {
      if (tape_.storages()[storage].last_use > segment.last) outlasting.push_back(storage);
    }
    RunForward(index, true, segment.last);
  }
  for (const int storage : outlasting) Release(storage);
}

int Walker::NewGradient(uint64_t bytes, Class kind) {
  gradients_.push_back({bytes, 0, kind});
  Take(kind, bytes);
  return static_cast<int>(gradients_.size()) - 1;
}

void Walker::Detach(int gradient) {
  Gradient& held = gradients_[gradient];
  if (--held.holders == 0) Give(held.kind, held.bytes);
}

void Walker::Attach(int storage, int gradient) {
  const int old = gradient_of_[storage];
  if (old == kNone) {
    ++gradients_[gradient].holders;
    gradient_of_[storage] = gradient;
    return;
  }
  ++gradients_[gradient].holders;
  if (gradients_[old].holders == 1) {  // added in place
    Note(walk_.backward, 0, Class::kTemporary);
    Detach(gradient);
    return;
  }
  const int sum = NewGradient(gradients_[gradient].bytes, gradients_[gradient].kind);
  Note(walk_.backward, 0, Class::kTemporary);
  Detach(old);
  Detach(gradient);
  gradients_[sum].holders = 1;
  gradient_of_[storage] = sum;
}

uint64_t Walker::GradientBytes(const Parameter& parameter, Dtype dtype) const {
  return parameter.elements * SizeOf(dtype);
}

// Gradients of a parameter that is used twice (a tied head) wait for one another and are then added into a
// third tensor.
void Walker::MakeParameterGradient(int index, bool cast, std::vector<std::pair<Class, uint64_t>>& passing) {
  const Parameter& parameter = tape_.parameters()[index];
  const Dtype own = parameter.adapter ? tape_.options().adapters : options_.gradients;
  const uint64_t bytes = GradientBytes(parameter, own);
  const Dtype made = parameter.adapter ? own : tape_.options().weights;
  const auto pass = [&](Class kind, uint64_t amount) {
    Take(kind, amount);
    passing.emplace_back(kind, amount);
  };
  if (cast || made != own) pass(Class::kTemporary, GradientBytes(parameter, cast ? Dtype::kBf16 : made));
  const bool second_use = used_before_[index];
  used_before_[index] = true;
  if (second_use) pass(Class::kTemporary, bytes);
  if ((options_.shards_gradients || options_.gradients_on_host) && !parameter.adapter) {
    const size_t unit =
        parameter.block == kNone ? tape_.blocks().size() : static_cast<size_t>(parameter.block);
    Take(Class::kUnsharded, bytes);
    unit_gradients_[unit] += bytes;
    if (!has_gradient_[index] && !options_.gradients_on_host)
      Take(Class::kGradient, (bytes + options_.ways - 1) / options_.ways);
  } else if (has_gradient_[index] || options_.step_in_backward) {
    pass(Class::kGradient, bytes);
    if (options_.step_in_backward) {
      pass(Class::kTemporary,
           static_cast<uint64_t>(static_cast<double>(parameter.elements) * options_.step_temporary));
    }
  } else {
    Take(Class::kGradient, bytes);
  }
  has_gradient_[index] = !options_.step_in_backward;
}

void Walker::RunBackward(int index) {
  const Operation& operation = tape_.operations()[index];
  const bool flows = std::any_of(operation.makes.begin(), operation.makes.end(),
                                 [&](int storage) { return gradient_of_[storage] != kNone; });
  if (operation.has_backward && flows) {
    std::vector<std::pair<Class, uint64_t>> passing;
    std::vector<std::pair<int, int>> made;  // storage, gradient
    int handed = kNone;
    for (const int storage : operation.makes) {
      if (gradient_of_[storage] != kNone) handed = gradient_of_[storage];
    }
    for (const int storage : operation.gradients_of) {
      const Storage& of = tape_.storages()[storage];
      const Class kind = of.kind == Class::kLogits ? Class::kLogits : Class::kTemporary;
      made.emplace_back(storage, operation.hands_on ? handed : NewGradient(of.bytes, kind));
    }
    for (const int parameter : operation.parameters) {
      if (tape_.parameters()[parameter].trainable) {
        MakeParameterGradient(parameter, operation.cast_gradients, passing);
      }
    }
    Note(walk_.backward, operation.backward_temporary, operation.temporary_kind);
    for (const auto& [kind, bytes] : passing) Give(kind, bytes);
    for (const auto& [storage, gradient] : made) Attach(storage, gradient);
  }
  for (const int storage : operation.makes) {
    if (gradient_of_[storage] == kNone) continue;
    Detach(gradient_of_[storage]);
    gradient_of_[storage] = kNone;
  }
  for (const int storage : operation.keeps) Drop(storage);
}

void Walker::Backward() {
  const int last = static_cast<int>(tape_.operations().size()) - 1;
  const int loss = tape_.operations()[last].makes.front();
  Attach(loss, NewGradient(tape_.storages()[loss].bytes, Class::kLogits));
  int block = static_cast<int>(tape_.blocks().size()) - 1;
  for (int index = last; index >= 0; --index) {
    if (block >= 0 && tape_.blocks()[block].last == index) EnterUnit(block);
    const int segment = segment_of_[index];
    if (segment != kNone && segments_[segment].last == index) Replay(segments_[segment]);
    RunBackward(index);
    if (segment != kNone && segments_[segment].first == index && segments_[segment].input != kNone) {
      Drop(segments_[segment].input);
    }
    if (block >= 0 && tape_.blocks()[block].first == index) LeaveUnit(block--, true);
  }
  LeaveUnit(kNone, true);
}

Walk Walker::Run() {
  if (options_.gradients_alive && tape_.options().training) {
    for (size_t index = 0; index < tape_.parameters().size(); ++index) {
      const Parameter& parameter = tape_.parameters()[index];
      if (!parameter.trainable || (options_.gradients_on_host && !parameter.adapter)) continue;
      const Dtype own = parameter.adapter ? tape_.options().adapters : options_.gradients;
      const uint64_t shares = options_.shards_gradients && !parameter.adapter ? options_.ways : 1;
      Take(Class::kGradient, (GradientBytes(parameter, own) + shares - 1) / shares);
      has_gradient_[index] = true;
    }
  }
  Forward();
  if (tape_.options().training && !tape_.operations().empty()) {
    // Earlier micro-batches of a pipeline stage keep what this one has kept.
    const uint64_t kept = walk_.forward_end[Class::kActivation];
    const uint64_t others = kept * (options_.micro_batches_in_flight - 1);
    walk_.backward = walk_.forward_end;
    Backward();
    for (Memory* memory : {&walk_.forward, &walk_.forward_end, &walk_.backward}) {
      (*memory)[Class::kActivation] += others;
    }
    walk_.gradients[Class::kGradient] = live_[Class::kGradient];
  }
  return walk_;
}

}  // namespace

uint64_t Memory::Total() const { return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0}); }

Walk WalkTape(const Tape& tape, const WalkOptions& options) {
  if (tape.too_large() || tape.operations().empty()) return {};
  return Walker(tape, options).Run();
}

}  // namespace vramtrace::estimate
