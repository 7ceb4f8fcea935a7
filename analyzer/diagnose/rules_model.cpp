// D11, D14, D13, D12, D23, D21: what the model itself fills the card with.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/diagnose/finding.h"

namespace vramtrace::diagnose {
namespace {

// Sizes that a repeated layer's weights explain: tokens x dimension.
std::set<uint64_t> LayerDimensions(const Evidence& evidence) {
  std::set<uint64_t> dimensions;
  for (const Parameter& parameter : evidence.parameters) {
    for (const int64_t dimension : parameter.shape) {
      if (dimension > 0) dimensions.insert(static_cast<uint64_t>(dimension));
    }
  }
  return dimensions;
}

struct Layers {
  std::map<uint64_t, uint64_t> bytes;  // of activations, by the layer's number
  std::vector<size_t> blocks;
  uint64_t total = 0;
  uint64_t kept_outputs = 0;  // bytes of it that a variable of the program holds
};

// Activations of the repeated stack with the most of them, with what hooks of the program keep of its layers.
Layers ActivationsByLayer(const Evidence& evidence, const std::set<size_t>& left_out) {
  std::map<std::string, Layers> stacks;
  for (const LiveRow& row : evidence.live) {
    if (row.kind != MemoryClass::kActivation && row.kind != MemoryClass::kOutput) continue;
    if (left_out.contains(row.index)) continue;
    std::string stem;
    uint64_t number = 0;
    if (!row.allocation->has_module || !LayerOf(row.allocation->module_path, &stem, &number)) continue;
    Layers& layers = stacks[stem];
    layers.bytes[number] += row.bytes;
    layers.blocks.push_back(row.index);
    layers.total += row.bytes;
    if (row.kind == MemoryClass::kOutput) layers.kept_outputs += row.bytes;
  }
  Layers best;
  for (auto& [stem, layers] : stacks) {
    if (layers.total > best.total) best = std::move(layers);
  }
  return best;
}

bool IsLinear(const std::string& class_name) {
  return class_name.find("Linear") != std::string::npos || class_name.find("Conv1D") != std::string::npos;
}

bool IsAttention(const attribution::Allocation& allocation) {
  for (const std::string_view word : {"ttention", "attn", "Attn"}) {
    if (allocation.module_path.find(word) != std::string::npos) return true;
    if (allocation.module_class.find(word) != std::string::npos) return true;
  }
  return false;
}

// A dimension of the model, of elements of any width, takes as many bytes a token.
bool IsDimension(const std::set<uint64_t>& dimensions, uint64_t bytes_per_token) {
  constexpr uint64_t kWidths[] = {1, 2, 4, 8};
  return std::any_of(std::begin(kWidths), std::end(kWidths), [&](uint64_t width) {
    return bytes_per_token % width == 0 && dimensions.contains(bytes_per_token / width);
  });
}

struct Squares {
  std::map<std::string, uint64_t> layers;  // bytes by the layer's path
  std::vector<size_t> blocks;
  uint64_t bytes = 0;
  bool ambiguous = false;
  uint64_t heads = 0;
  uint64_t length = 0;
};

Squares FindSquares(const Evidence& evidence) {
  constexpr uint64_t kShortest = 32;
  constexpr uint64_t kMostHeads = 256;
  Squares best;
  const std::set<uint64_t> dimensions = LayerDimensions(evidence);
  std::set<std::pair<uint64_t, uint64_t>> shapes;
  for (const std::vector<int64_t>& shape : evidence.inputs) {
    if (shape.size() < 2 || shape[0] <= 0 || shape[1] < static_cast<int64_t>(kShortest) ||
        shape[1] > INT32_MAX || shape[0] > INT32_MAX)
      continue;
    shapes.insert({static_cast<uint64_t>(shape[0]), static_cast<uint64_t>(shape[1])});
  }
  for (const auto& [batch, length] : shapes) {
    std::map<uint64_t, Squares> by_heads;
    for (const LiveRow& row : evidence.live) {
      if (row.kind == MemoryClass::kWeight || row.kind == MemoryClass::kGradient ||
          row.kind == MemoryClass::kOptimizerState)
        continue;
      if (!row.allocation->has_module || row.step != evidence.at.step) continue;
      for (const uint64_t width : {4, 2, 1}) {
        const uint64_t unit = batch * length * length * width;
        if (row.bytes < unit || row.bytes % unit != 0 || row.bytes / unit > kMostHeads) continue;
        const uint64_t heads = row.bytes / unit;
        if (IsLinear(row.allocation->module_class)) break;
        // Where a dimension of the model has the same size, only an attention module's block counts.
        const bool ambiguous = IsDimension(dimensions, heads * length * width);
        if (ambiguous && !IsAttention(*row.allocation)) break;
        Squares& squares = by_heads[heads * width];
        squares.layers[row.allocation->module_path] += row.bytes;
        squares.blocks.push_back(row.index);
        squares.bytes += row.bytes;
        squares.heads = heads;
        squares.length = length;
        squares.ambiguous = squares.ambiguous || ambiguous;
        break;
      }
    }
    for (auto& [key, squares] : by_heads) {
      if (squares.bytes > best.bytes) best = std::move(squares);
    }
  }
  return best;
}

// The refused request has the size of one of the blocks.
bool RefusedOneMore(const Evidence& evidence, const Squares& squares) {
  if (!evidence.refusal || squares.blocks.empty()) return false;
  const timeline::Block& block = evidence.snapshot.blocks[squares.blocks.front()].block;
  return evidence.refusal->requested == block.bytes;
}

uint64_t RepeatedLayers(const Evidence& evidence) {
  std::map<std::string, std::set<uint64_t>> stacks;
  for (const Parameter& parameter : evidence.parameters) {
    std::string stem;
    uint64_t number = 0;
    if (LayerOf(parameter.name, &stem, &number)) stacks[stem].insert(number);
  }
  size_t most = 0;
  for (const auto& [stem, numbers] : stacks) most = std::max(most, numbers.size());
  return most;
}

}  // namespace

Finding QuadraticAttention(const Evidence& evidence) {
  Finding finding;
  Squares squares = FindSquares(evidence);
  if (squares.bytes == 0) return finding;
  std::set<std::string> layers;
  for (const auto& [path, bytes] : squares.layers) {
    std::string stem;
    uint64_t number = 0;
    layers.insert(LayerOf(path, &stem, &number) ? fmt::format("{}{}", stem, number) : path);
  }
  const uint64_t repeated = std::max<uint64_t>(1, RepeatedLayers(evidence));
  finding.blocks = squares.blocks;
  finding.numbers = {{"blocks", fmt::format("{} of {} heads x {} x {} x batch, {} in all, in {} of {} layers",
                                            squares.blocks.size(), squares.heads, squares.length,
                                            squares.length, Size(squares.bytes), layers.size(), repeated)}};
  constexpr double kShare = 0.2;
  if (!Material(evidence, squares.bytes, kShare) || squares.heads < 1) {
    finding.state = State::kTooLittle;
    return finding;
  }
  finding.state = State::kFound;
  const bool most = layers.size() * 10 >= repeated * 8 ||
                    (evidence.refused && (layers.size() >= 2 || RefusedOneMore(evidence, squares)));
  finding.confidence = most && !squares.ambiguous ? Confidence::kHigh : Confidence::kMedium;
  if (squares.ambiguous) finding.missing.emplace_back("a dimension of the model explains the size as well");
  if (!most) finding.missing.emplace_back("the same size in most layers");
  finding.sentence = fmt::format(
      "{} of the peak are attention scores of {} x {} for each head: they grow with the square of the "
      "length.",
      Size(squares.bytes), squares.length, squares.length);
  const std::set<size_t> held(squares.blocks.begin(), squares.blocks.end());
  std::set<uint64_t> sizes;
  for (const size_t index : squares.blocks) sizes.insert(evidence.snapshot.blocks[index].block.TensorBytes());
  Remedy fused{
      "scaled_dot_product_attention (attn_implementation=\"sdpa\" or \"flash_attention_2\" in transformers); "
      "a dense mask, dropout on the "
      "scores or returned attention weights keep it off",
      squares.bytes, Forecast::kWithout, "fused-attention"};
  fused.without = [sizes](const forecast::Stream& stream, const forecast::Request& request) {
    const forecast::Site& site = stream.SiteOf(request);
    return sizes.contains(request.bytes) && site.has_module && !IsLinear(site.module_class);
  };
  finding.remedies.push_back(std::move(fused));
  AdviseHalfBatch(evidence, &finding);
  return finding;
}

Finding NoCheckpointing(const Evidence& evidence) {
  Finding finding;
  const Squares squares = FindSquares(evidence);
  const bool scores = Material(evidence, squares.bytes, 0.2) && !squares.ambiguous;
  const Layers layers = ActivationsByLayer(
      evidence, scores ? std::set<size_t>(squares.blocks.begin(), squares.blocks.end()) : std::set<size_t>());
  if (layers.bytes.size() < 2) return finding;
  // One copy: tokens x width, the size that most blocks of a layer have.
  std::map<uint64_t, size_t> counts;
  const std::set<size_t> held(layers.blocks.begin(), layers.blocks.end());
  for (const LiveRow& row : evidence.live) {
    if (held.contains(row.index)) ++counts[row.bytes];
  }
  // The smallest that every layer has is its input's; statistics of a norm are smaller still.
  constexpr uint64_t kStatistics = 32;
  uint64_t largest = 0;
  for (const auto& [bytes, count] : counts) {
    if (count >= layers.bytes.size()) largest = std::max(largest, bytes);
  }
  uint64_t copy = 0;
  for (const auto& [bytes, count] : counts) {
    if (copy == 0 && count >= layers.bytes.size() - 1 && bytes * kStatistics >= largest) copy = bytes;
  }
  if (copy == 0) return finding;
  std::map<uint64_t, size_t> per_layer;
  for (const auto& [number, bytes] : layers.bytes) ++per_layer[bytes];
  const auto common = std::max_element(per_layer.begin(), per_layer.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const double copies = static_cast<double>(common->first) / static_cast<double>(copy);
  const bool uses_checkpoint = evidence.history.recomputes;
  finding.numbers = {{"layers", fmt::format("{} with {} each: {:.1f} copies of {}", common->second,
                                            Size(common->first), copies, Size(copy))},
                     {"recompute", uses_checkpoint ? "seen in backward" : "never seen"}};
  finding.blocks = layers.blocks;
  constexpr double kMostCopies = 3;
  constexpr double kShare = 0.25;
  if (copies <= kMostCopies || !Material(evidence, layers.total, kShare)) {
    finding.state = copies <= kMostCopies ? State::kAbsent : State::kTooLittle;
    return finding;
  }
  finding.state = State::kFound;
  // The frames of checkpoint() around the layers: it is asked for, and what it should drop is kept.
  size_t wrapped = 0;
  for (const LiveRow& row : evidence.live) {
    if (held.contains(row.index) && HasFrame(evidence, row.live->block.stack, "utils/checkpoint.py"))
      ++wrapped;
  }
  const bool ineffective = wrapped * 2 >= layers.blocks.size() || uses_checkpoint;
  finding.confidence = ineffective && common->second >= 4 ? Confidence::kHigh : Confidence::kMedium;
  if (!ineffective) finding.missing.emplace_back("no sign that checkpointing was wanted");
  const std::string kept = fmt::format("{} layers keep {:.0f} copies of their input each, {} in all",
                                       layers.bytes.size(), copies, Size(layers.total));
  if (ineffective) {
    finding.sentence = fmt::format("Checkpointing is there and does not take effect: {}.", kept);
    if (layers.kept_outputs * 4 >= layers.total) {
      finding.remedies.push_back(
          {"let go of the results that a list or a hook of the program keeps of every layer",
           layers.kept_outputs, Forecast::kNone});
    }
    finding.remedies.push_back(
        {"use_reentrant=False; with frozen weights also model.enable_input_require_grads(); check that every "
         "block is wrapped",
         layers.total, Forecast::kNone});
    return finding;
  }
  finding.sentence = fmt::format("Activation checkpointing is absent: {}.", kept);
  finding.remedies.push_back(
      {"checkpoint each block (model.gradient_checkpointing_enable() in transformers), 20 to 40 % slower",
       layers.total, Forecast::kTechnique, "checkpointing"});
  AdviseHalfBatch(evidence, &finding);
  return finding;
}

Finding ActivationsDominate(const Evidence& evidence) {
  Finding finding;
  size_t adapters = 0;
  uint64_t trained = 0;
  uint64_t all = 0;
  for (const Parameter& parameter : evidence.parameters) {
    all += parameter.bytes;
    trained += parameter.trained ? parameter.bytes : 0;
    adapters += parameter.name.find("lora") != std::string::npos ||
                        parameter.name.find("adapter") != std::string::npos
                    ? 1
                    : 0;
  }
  if (all == 0 || (adapters == 0 && (trained == 0 || trained * 10 > all))) return finding;
  const uint64_t model = evidence.BytesOf(MemoryClass::kWeight) +
                         evidence.BytesOf(MemoryClass::kOptimizerState) +
                         evidence.BytesOf(MemoryClass::kGradient) + evidence.BytesOf(MemoryClass::kBuffer);
  const uint64_t weights = evidence.BytesOf(MemoryClass::kWeight);
  uint64_t known = 0;
  for (const LiveRow& row : evidence.live) known += row.kind != MemoryClass::kUnknown ? row.bytes : 0;
  finding.numbers = {
      {"weights",
       fmt::format(
           "{} with states and gradients, {} of the allocated bytes; {} of the parameters are trained",
           Size(model), Percent(model, evidence.allocated), Percent(trained, all))}};
  if (model * 10 >= evidence.allocated * 4) return finding;
  const uint64_t activations = evidence.allocated - model;
  if (!Material(evidence, activations, 0.4)) return finding;
  const double coverage =
      static_cast<double>(known) / static_cast<double>(std::max<uint64_t>(1, evidence.allocated));
  constexpr double kMost = 0.9;
  constexpr double kMany = 0.7;
  finding.state = coverage >= kMany ? State::kFound : State::kTooLittle;
  finding.confidence = coverage >= kMost && adapters > 0 ? Confidence::kHigh : Confidence::kMedium;
  for (const LiveRow& row : evidence.live) {
    if (row.kind == MemoryClass::kActivation || row.kind == MemoryClass::kTemporary ||
        row.kind == MemoryClass::kOutput)
      Claim(&finding, row);
  }
  finding.sentence = fmt::format(
      "Adapters are trained, and {} of {} are activations and temporaries: a smaller rank or narrower "
      "weights cannot help.",
      Size(activations), Size(evidence.allocated));
  finding.cannot.push_back(
      fmt::format("4-bit weights: at most {} of {}", Size(weights * 3 / 4), Size(evidence.used)));
  finding.remedies.push_back({"checkpoint each block, with enable_input_require_grads() for frozen weights",
                              activations, Forecast::kTechnique, "checkpointing"});
  AdviseHalfBatch(evidence, &finding);
  return finding;
}

Finding NotQuantised(const Evidence& evidence) {
  Finding finding;
  uint64_t packed = 0;
  size_t packed_tensors = 0;
  uint64_t wide = 0;
  std::map<std::string, uint64_t> by_module;
  for (const LiveRow& row : evidence.live) {
    if (row.kind != MemoryClass::kWeight && row.kind != MemoryClass::kBuffer) continue;
    const std::string& dtype = row.allocation->dtype;
    if (dtype.find("int8") != std::string::npos || dtype.find("uint8") != std::string::npos) {
      packed += row.bytes;
      ++packed_tensors;
    } else if (dtype.find("float") != std::string::npos) {
      wide += row.bytes;
      Claim(&finding, row);
      std::string name =
          row.allocation->names.empty() ? row.allocation->module_path : row.allocation->names.front();
      std::string stem;
      uint64_t number = 0;
      if (LayerOf(name, &stem, &number)) {
        const std::string number_text = std::to_string(number);
        name.erase(stem.size(), number_text.size());
        name.insert(stem.size(), 1, '*');
      }
      by_module[name] += row.bytes;
    }
  }
  constexpr size_t kQuantised = 4;
  if (packed_tensors < kQuantised) {
    finding.blocks.clear();
    return finding;
  }
  finding.numbers = {{"packed", fmt::format("{} in {} tensors", Size(packed), packed_tensors)},
                     {"wide", fmt::format("{} in 16 or 32 bits, {} of the weights", Size(wide),
                                          Percent(wide, wide + packed))}};
  if (wide <= packed || !Material(evidence, wide, 0.15)) {
    finding.state = State::kTooLittle;
    finding.blocks.clear();
    return finding;
  }
  std::vector<std::pair<uint64_t, std::string>> largest;
  largest.reserve(by_module.size());
  for (const auto& [name, bytes] : by_module) largest.emplace_back(bytes, name);
  std::sort(largest.rbegin(), largest.rend());
  std::string list;
  for (size_t i = 0; i < std::min<size_t>(4, largest.size()); ++i) {
    list += fmt::format("{}{} {}", i == 0 ? "" : ", ", largest[i].second, Size(largest[i].first));
  }
  finding.state = State::kFound;
  finding.confidence = Confidence::kHigh;
  finding.sentence =
      fmt::format("The base is quantised in part only: {} of its bytes are 16 or 32-bit weights: {}.",
                  Percent(wide, wide + packed), list);
  finding.remedies.push_back(
      {"cast norms and head to bfloat16, skip the preparation that widens them, quantise what is left "
       "(experts)",
       wide, Forecast::kNone});
  return finding;
}

Finding ExtraModels(const Evidence& evidence) {
  Finding finding;
  // Weights that are trained against every other block of the time before the first forward.
  constexpr uint64_t kSmallest = 4096;
  std::map<uint64_t, size_t> own;
  uint64_t own_bytes = 0;
  size_t own_blocks = 0;
  std::set<std::string> trained;
  for (const Parameter& parameter : evidence.parameters) {
    if (parameter.trained) trained.insert(parameter.name);
  }
  std::map<uint64_t, std::vector<const LiveRow*>> others;
  std::set<std::string> taken;
  for (auto row = evidence.live.rbegin(); row != evidence.live.rend(); ++row) {
    if (row->bytes < kSmallest) continue;
    const bool named = row->kind == MemoryClass::kWeight && !row->allocation->names.empty();
    const std::string name = named ? row->allocation->names.front() : std::string();
    if (named && trained.contains(name) && taken.insert(name).second) {
      ++own[row->bytes];
      own_bytes += row->bytes;
      ++own_blocks;
    } else if (row->kind == MemoryClass::kWeight || row->kind == MemoryClass::kUnknown ||
               row->kind == MemoryClass::kBuffer) {
      others[row->bytes].push_back(&*row);
    }
  }
  if (own_blocks < 3) return finding;
  size_t alike = 0;
  std::set<std::string> places;
  for (const auto& [bytes, count] : own) {
    const auto found = others.find(bytes);
    if (found == others.end()) continue;
    alike += std::min(count, found->second.size());
    for (const LiveRow* row : found->second) {
      Claim(&finding, *row);
      places.insert(row->function);
    }
  }
  const double similarity = static_cast<double>(alike) / static_cast<double>(own_blocks);
  const uint64_t bytes = ClaimedBytes(evidence, finding);
  finding.numbers = {
      {"copies",
       fmt::format("{:.0f} % of the {} trained weights ({}) have a second block of the same size; {} in all",
                   100 * similarity, own_blocks, Size(own_bytes), Size(bytes))}};
  constexpr double kAlike = 0.9;
  if (similarity < kAlike || !Material(evidence, bytes, 0.1)) {
    finding.blocks.clear();
    return finding;
  }
  finding.state = State::kFound;
  bool apart = false;
  for (const std::string& place : places)
    apart = apart || place.find("deepcopy") != std::string::npos ||
            place.find("__init__") != std::string::npos || place.find("convert") != std::string::npos;
  finding.confidence = apart ? Confidence::kHigh : Confidence::kMedium;
  finding.sentence = fmt::format(
      "A second set of the weights is on the card: {} (an average, a reference or a teacher).", Size(bytes));
  finding.remedies.push_back(
      {"keep the copy on the host, precompute what it answers, or use the adapter-disabled model as "
       "reference",
       bytes, Forecast::kNone});
  return finding;
}

Finding ConvolutionWorkspace(const Evidence& evidence) {
  Finding finding;
  const auto convolves = [&](model::StackId stack, const std::string& operator_name) {
    return operator_name.find("Convolution") != std::string::npos ||
           HasFrame(evidence, stack, "_conv_forward");
  };
  for (const LiveRow& row : evidence.live) {
    const timeline::LiveBlock& live = *row.live;
    constexpr uint64_t kAtOnce = 8;  // events: its own operator's
    const bool short_lived = live.freed && live.free_sequence - live.block.sequence <= kAtOnce;
    if (!short_lived || row.bytes * 20 < evidence.total ||
        !convolves(live.block.stack, row.allocation->operator_name))
      continue;
    Claim(&finding, row);
    finding.numbers.emplace_back("block",
                                 fmt::format("{} in {}", Size(row.bytes), row.allocation->module_path));
  }
  const bool refused = evidence.refusal && evidence.refusal->requested * 20 >= evidence.total &&
                       convolves(evidence.at.stack, {});
  if (finding.blocks.empty()) {
    if (refused) finding.state = State::kTooLittle;
    return finding;
  }
  finding.state = State::kFound;
  finding.confidence = Confidence::kHigh;
  const uint64_t bytes = ClaimedBytes(evidence, finding);
  finding.sentence = fmt::format(
      "{} of the peak is the workspace of one convolution, for the time of that operator.", Size(bytes));
  finding.remedies.push_back(
      {"torch.backends.cudnn.benchmark = False, or fixed input sizes; CUDNN_CONV_WSCAP_DBG limits the "
       "workspace",
       bytes, Forecast::kNone});
  return finding;
}

}  // namespace vramtrace::diagnose
