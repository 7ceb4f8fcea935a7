// LoRA: every weight is frozen; beside each adapted linear layer run two thin ones. What peft's layer asks
// for: peft/tuners/lora/layer.py, Linear.forward: result + lora_B(lora_A(x)) * scaling.

#include <algorithm>

#include "analyzer/forecast/techniques/parameters.h"
#include "analyzer/forecast/techniques/rows.h"

namespace vramtrace::forecast {
namespace {

bool IsAttention(const std::string& path) {
  const std::string name = path.substr(path.rfind('.') + 1);
  constexpr std::string_view kNames[] = {"q_proj", "k_proj", "v_proj", "o_proj", "c_attn",
                                         "query",  "key",    "value",  "qkv"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

class LowRank {
 public:
  LowRank(const Stream& stream, const TechniqueOptions& options, bool quantised)
      : stream_(stream), options_(options), quantised_(quantised), graph_(stream), edit_(stream) {
    for (const LinearLayer& linear : InnerLinears(stream)) {
      if (options.targets == "attention" && !IsAttention(linear.path)) continue;
      adapted_.insert(linear.path);
      linears_.push_back(linear);
    }
  }

  Edited Apply() && {
    if (linears_.empty()) return "the model has no linear layers to adapt";
    if (graph_.passes().empty()) return "no forward pass was recorded";
    if (OptimizerPlaces(stream_).empty()) return "no optimizer step was completed";
    const OptimizerRecipe recipe = RecipeOf(stream_);
    FindWorkspace();
    // A cast copy of the input is saved in place of the input.
    const bool casts = quantised_ && stream_[linears_.front().weight].element_size == kFloat;
    Freeze(graph_, {}, adapted_, casts ? std::set<std::string>() : adapted_, &edit_);
    for (const LinearLayer& linear : linears_) AddWeights(linear);
    for (const auto& [number, node] : graph_.nodes()) AddToNode(number, node);
    Stream edited = std::move(edit_).Finish();
    for (Parameter& parameter : edited.parameters) parameter.trained = false;
    edited.parameters.insert(edited.parameters.end(), added_.begin(), added_.end());
    return Rebuild(edited, recipe);
  }

 private:
  // What a matrix product without bias takes for a moment.
  void FindWorkspace() {
    for (const auto& [number, node] : graph_.nodes()) {
      if (!IsProduct(node.operator_name)) continue;
      for (const RequestId id : node.backward) {
        if (stream_[id].memory_class == MemoryClass::kWorkspace) workspace_ = stream_[id];
      }
    }
  }

  void AddWeights(const LinearLayer& linear) {
    const Parameter& base = stream_[linear.weight];
    if (quantised_) Quantise(linear.weight);
    const auto add = [&](const char* name, uint64_t rows, uint64_t columns) {
      Parameter parameter;
      parameter.module_path = linear.path + name;
      parameter.name = parameter.module_path + ".weight";
      // bitsandbytes' layer has its adapters in the type it computes in.
      parameter.element_size = quantised_ ? kHalf : std::max<uint32_t>(1, base.element_size);
      parameter.dtype = quantised_ ? "bfloat16" : base.dtype;
      parameter.shape = {static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
      parameter.bytes = rows * columns * parameter.element_size;
      parameter.trained = true;
      Request request;
      request.bytes = parameter.bytes;
      request.law = SizeLaw::Fixed(parameter.bytes);
      request.site = SiteOfWeight(linear.weight);
      request.memory_class = MemoryClass::kWeight;
      request.confidence = Confidence::kHigh;
      request.parameter = ParameterId{static_cast<uint32_t>(stream_.parameters.size() + added_.size())};
      edit_.AllocateBefore(graph_.passes().front().begin, request);
      added_.push_back(parameter);
      return request.parameter;
    };
    const ParameterId a = add(".lora_A.default", options_.rank, linear.in);
    const ParameterId b = add(".lora_B.default", linear.out, options_.rank);
    of_module_[linear.path] = {&linear, a, b};
  }

  // NF4 with double quantisation: half a byte an element, an 8-bit scale a block of 64, one of 4 bytes for
  // 256 of those, and two tables. Source: arXiv 2305.14314; bitsandbytes/functional.py.
  void Quantise(ParameterId id) {
    const Parameter& parameter = stream_[id];
    const uint64_t elements = parameter.elements();
    const uint64_t blocks = (elements + kBlock - 1) / kBlock;
    const uint64_t outer = (blocks + kOuterBlock - 1) / kOuterBlock;
    for (uint32_t i = 0; i < stream_.requests.size(); ++i) {
      const Request& request = stream_.requests[i];
      if (request.memory_class != MemoryClass::kWeight || request.parameter != id) continue;
      const uint32_t place = edit_.SpanOf(RequestId{i}).allocated;
      if (place == Span::kOpen) continue;
      edit_.Resize(RequestId{i}, (elements + 1) / 2);
      for (const Bytes bytes : {blocks, outer * kFloat, Bytes{16} * kFloat, Bytes{256} * kFloat, kFloat}) {
        Request scale = request;
        scale.bytes = bytes;
        scale.law = SizeLaw::Fixed(bytes);
        edit_.AllocateAfter(place, scale);
      }
    }
  }

  static constexpr uint32_t kHalf = 2;
  static constexpr uint64_t kBlock = 64;
  static constexpr uint64_t kOuterBlock = 256;
  static constexpr Bytes kFloat = 4;

  [[nodiscard]] SiteId SiteOfWeight(ParameterId id) const {
    for (const Request& request : stream_.requests) {
      if (request.memory_class == MemoryClass::kWeight && request.parameter == id) return request.site;
    }
    return stream_.requests.front().site;
  }

  struct Layer {
    const LinearLayer* linear = nullptr;
    ParameterId a = ParameterId::kNone;
    ParameterId b = ParameterId::kNone;
  };

  void AddToNode(uint64_t /*number*/, const GraphNode& node) {
    RequestId result = RequestId::kNone;
    for (const RequestId id : node.forward) {
      const Request& request = stream_[id];
      const bool scratch = request.memory_class == MemoryClass::kWorkspace || request.is_copy;
      if (scratch && !(request.is_copy && node.forward.size() <= 2)) continue;
      if (result == RequestId::kNone || request.bytes > stream_[result].bytes) result = id;
    }
    if (result == RequestId::kNone) return;
    const auto found = of_module_.find(stream_.SiteOf(stream_[result]).module_path);
    if (found == of_module_.end()) return;
    const Request thin = AddForward(found->second, result);
    if (node.backward_place != Span::kOpen) AddBackward(found->second, node, result, thin);
  }

  Request Like(RequestId id, MemoryClass memory_class) const {
    Request request = stream_[id];
    request.memory_class = memory_class;
    request.is_copy = false;
    request.parameter = ParameterId::kNone;
    request.saved = false;
    return request;
  }

  void Scratch(uint32_t place) {
    if (workspace_.bytes > 0) edit_.FreeBefore(edit_.AllocateBefore(place, workspace_), place);
  }

  static void Times(Request* request, uint64_t numerator, uint64_t denominator) {
    request->bytes = (request->bytes * numerator + denominator - 1) / denominator;
    request->law = request->law.Times(numerator, denominator);
  }

  [[nodiscard]] Request Sized(Request request, Bytes bytes) const {
    request.bytes = bytes;
    request.law = SizeLaw::Fixed(bytes);
    return request;
  }

  // The recorded result becomes the sum. Returns the thin layer's result.
  Request AddForward(const Layer& layer, RequestId result) {
    const uint32_t place = edit_.SpanOf(result).allocated;
    const bool casts = Casts(layer);
    const Request whole = Like(result, MemoryClass::kTemporary);
    Request narrow = whole;  // in the type of the adapters
    if (casts) Times(&narrow, 1, 2);
    Request thin = narrow;
    thin.memory_class = MemoryClass::kActivation;
    thin.saved = true;
    Times(&thin, options_.rank, layer.linear->out);
    RequestId base = RequestId::kNone;
    if (quantised_) {
      base = AddQuantisedProduct(layer, place, whole, narrow);
    } else {
      base = edit_.AllocateBefore(place, whole);
    }
    if (casts) {
      Request input = narrow;
      input.memory_class = MemoryClass::kActivation;
      Times(&input, layer.linear->in, layer.linear->out);
      input_ = edit_.AllocateBefore(place, input);
    }
    thin_ = edit_.AllocateBefore(place, thin);
    Scratch(place);
    const RequestId raised = edit_.AllocateBefore(place, narrow);
    Scratch(place);
    const RequestId scaled = edit_.AllocateBefore(place, narrow);
    edit_.FreeBefore(raised, place);
    edit_.FreeAfter(scaled, place);
    edit_.FreeAfter(base, place);
    return thin;
  }

  // The model computes in single precision, the adapters in half: inputs and results are cast.
  [[nodiscard]] bool Casts(const Layer& layer) const {
    return quantised_ && stream_[layer.linear->weight].element_size == kFloat;
  }

  // The weight in half precision and its scales in single, for the product's duration.
  RequestId AddQuantisedProduct(const Layer& layer, uint32_t place, const Request& whole,
                                const Request& narrow) {
    const bool casts = Casts(layer);
    Request input = narrow;
    Times(&input, layer.linear->in, layer.linear->out);
    const RequestId cast = casts ? edit_.AllocateBefore(place, input) : RequestId::kNone;
    const std::vector<RequestId> weight = Dequantise(layer, place, narrow);
    const RequestId product = edit_.AllocateBefore(place, narrow);
    Scratch(place);
    for (const RequestId id : weight) edit_.FreeBefore(id, place);
    if (!casts) return product;
    const RequestId base = edit_.AllocateBefore(place, whole);
    edit_.FreeBefore(product, place);
    edit_.FreeBefore(cast, place);
    return base;
  }

  std::vector<RequestId> Dequantise(const Layer& layer, uint32_t place, const Request& like) {
    const uint64_t elements = layer.linear->in * layer.linear->out;
    std::vector<RequestId> made;
    for (const Bytes bytes : {elements / kBlock * kFloat, elements / kBlock * kFloat, elements * kHalf}) {
      made.push_back(edit_.AllocateBefore(place, Sized(like, bytes)));
    }
    return made;
  }

  RequestId Gradient(uint32_t place, const GraphNode& node, ParameterId id) {
    Request request = Like(node.backward.front(), MemoryClass::kGradient);
    const Parameter& parameter = added_[static_cast<size_t>(id) - stream_.parameters.size()];
    request.bytes = parameter.bytes;
    request.law = SizeLaw::Fixed(parameter.bytes);
    request.parameter = id;
    const RequestId made = edit_.AllocateBefore(place, request);
    edit_.FreeAfter(made, EndOfGradients(place));
    return made;
  }

  // Gradients go where the run's go: at the first free of one after this backward pass.
  uint32_t EndOfGradients(uint32_t place) {
    if (place < gradients_until_.first || place > gradients_until_.second) {
      uint32_t until = Span::kOpen;
      for (uint32_t i = place; i < stream_.events.size(); ++i) {
        const Event& event = stream_.events[i];
        if (event.kind != EventKind::kFree || event.phase == Phase::kBackward) continue;
        if (stream_[event.request].memory_class != MemoryClass::kGradient) continue;
        until = i;
        break;
      }
      gradients_until_ = {place, until};
    }
    return gradients_until_.second;
  }

  void AddBackward(const Layer& layer, const GraphNode& node, RequestId result, Request thin) {
    const uint32_t place = node.backward_place;
    RequestId input = RequestId::kNone;  // the gradient of the layer's input
    for (const RequestId id : node.backward) {
      const Request& request = stream_[id];
      const bool other =
          request.memory_class == MemoryClass::kWorkspace || request.memory_class == MemoryClass::kGradient;
      if (!other && (input == RequestId::kNone || request.bytes > stream_[input].bytes)) input = id;
    }
    Request scaled = Like(node.backward.front(), MemoryClass::kTemporary);
    scaled.bytes = stream_[result].bytes;
    scaled.law = stream_[result].law;
    const bool casts = Casts(layer);
    if (casts) Times(&scaled, 1, 2);
    const RequestId cast = casts ? edit_.AllocateBefore(place, scaled) : RequestId::kNone;
    const RequestId multiplied = edit_.AllocateBefore(place, scaled);
    if (casts) edit_.FreeBefore(cast, place);
    Gradient(place, node, layer.b);
    Scratch(place);
    thin.memory_class = MemoryClass::kTemporary;
    thin.site = stream_[node.backward.front()].site;
    const RequestId narrow = edit_.AllocateBefore(place, thin);
    Scratch(place);
    edit_.FreeBefore(multiplied, place);
    edit_.FreeBefore(thin_, place);
    Gradient(place, node, layer.a);
    Scratch(place);
    if (casts) edit_.FreeBefore(input_, place);
    if (input == RequestId::kNone) {
      edit_.FreeBefore(narrow, place);
      return;
    }
    const uint32_t sum = edit_.SpanOf(input).allocated;
    const Request wide = Like(input, MemoryClass::kTemporary);
    const RequestId through_adapter = edit_.AllocateBefore(sum, wide);
    Scratch(sum);
    edit_.FreeBefore(narrow, sum);
    std::vector<RequestId> weight;
    if (quantised_) weight = Dequantise(layer, sum, wide);
    const RequestId through_base = edit_.AllocateBefore(sum, wide);
    Scratch(sum);
    for (const RequestId id : weight) edit_.FreeBefore(id, sum);
    edit_.FreeAfter(through_adapter, sum);
    edit_.FreeAfter(through_base, sum);
  }

  const Stream& stream_;
  const TechniqueOptions& options_;
  bool quantised_;
  Graph graph_;
  Edit edit_;
  std::set<std::string> adapted_;
  std::vector<LinearLayer> linears_;
  std::map<std::string, Layer> of_module_;
  std::vector<Parameter> added_;
  Request workspace_;
  RequestId thin_ = RequestId::kNone;   // of the layer whose forward was written last
  RequestId input_ = RequestId::kNone;  // its input, cast
  std::pair<uint32_t, uint32_t> gradients_until_{1, 0};
};

}  // namespace

bool IsLowRank(const Stream& stream) {
  return std::any_of(stream.parameters.begin(), stream.parameters.end(), [](const Parameter& parameter) {
    return parameter.name.find("lora_A") != std::string::npos;
  });
}

Edited ApplyLora(const Stream& stream, const TechniqueOptions& options) {
  return LowRank(stream, options, false).Apply();
}

bool IsQuantised(const Stream& stream) {
  return std::any_of(stream.modules.begin(), stream.modules.end(),
                     [](const Module& module) { return module.class_name == "Linear4bit"; });
}

Edited ApplyQlora(const Stream& stream, const TechniqueOptions& options) {
  const auto transposed = [](const Module& module) { return module.class_name == "Conv1D"; };
  if (std::any_of(stream.modules.begin(), stream.modules.end(), transposed)) {
    return "bitsandbytes quantises nn.Linear, and this model's layers are transformers' Conv1D";
  }
  Edited edited = LowRank(stream, options, true).Apply();
  if (auto* result = std::get_if<Stream>(&edited)) {
    const std::vector<LinearLayer> linears = InnerLinears(stream);
    for (Module& module : result->modules) {
      const bool inner =
          std::any_of(linears.begin(), linears.end(), [&](const auto& l) { return l.path == module.path; });
      if (inner) module.class_name = "Linear4bit";
    }
  }
  return edited;
}

}  // namespace vramtrace::forecast
