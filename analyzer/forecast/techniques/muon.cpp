// Muon for the matrices of the repeated blocks, AdamW for everything else, as its authors advise.
// Source: torch/optim/_muon.py (PyTorch 2.9 and later); github.com/KellerJordan/Muon.

#include <algorithm>

#include "analyzer/forecast/techniques/blocks.h"
#include "analyzer/forecast/techniques/optimizer_edit.h"
#include "analyzer/forecast/techniques/rows.h"

namespace vramtrace::forecast {
namespace {

constexpr Bytes kHalf = 2;      // the iteration runs in BF16
constexpr int kIterations = 5;  // of Newton and Schulz

class MuonStep {
 public:
  MuonStep(OptimizerEdit* edit, const OptimizerPlace& at) : edit_(edit), at_(at) {}

  // Local variables live until the next matrix's take their names.
  void Update(const Parameter& matrix) {
    const uint64_t elements = matrix.elements();
    const auto side = static_cast<Bytes>(std::max<int64_t>(1, std::min(matrix.shape[0], matrix.shape[1])));
    const RequestId update = Replace(&update_, matrix.bytes);
    RequestId x = edit_->Take(at_, elements * kHalf);
    RequestId gram = RequestId::kNone;
    RequestId polynomial = RequestId::kNone;
    for (int i = 0; i < kIterations; ++i) {
      Replace(&gram, side * side * kHalf);
      Replace(&polynomial, side * side * kHalf);
      Replace(&x, elements * kHalf);
    }
    edit_->Give(at_, gram);
    edit_->Give(at_, polynomial);
    edit_->Give(at_, update);
    update_ = x;
  }
  void End() {
    if (update_ != RequestId::kNone) edit_->Give(at_, update_);
  }

 private:
  // A new value is there before the old one goes.
  RequestId Replace(RequestId* name, Bytes bytes) {
    const RequestId made = edit_->Take(at_, bytes);
    if (*name != RequestId::kNone) edit_->Give(at_, *name);
    *name = made;
    return made;
  }

  OptimizerEdit* edit_;
  const OptimizerPlace& at_;
  RequestId update_ = RequestId::kNone;
};

}  // namespace

bool IsMuon(const Stream& stream) {
  return std::any_of(stream.facts.optimizers.begin(), stream.facts.optimizers.end(),
                     [](const std::string& name) { return name.starts_with("Muon"); });
}

Edited ApplyMuon(const Stream& stream, const TechniqueOptions& /*options*/) {
  const std::vector<std::string> blocks = RepeatedBlocks(stream);
  OptimizerEdit edit(stream);
  if (edit.places().empty()) return "no optimizer step was completed";
  std::vector<ParameterId> matrices;
  std::vector<ParameterId> others;
  for (const ParameterId id : edit.trained()) {
    const Parameter& parameter = stream[id];
    const bool inner = std::any_of(blocks.begin(), blocks.end(), [&](const std::string& block) {
      return IsBelow(parameter.module_path, block);
    });
    (inner && parameter.shape.size() == 2 ? matrices : others).push_back(id);
  }
  if (matrices.empty()) return "no repeated block has a matrix to train";
  edit.RemoveTemporaries();
  edit.RemoveState();
  for (const OptimizerPlace& at : edit.places()) {
    for (const ParameterId id : matrices) {
      if (at.first) edit.AddState(at, id, stream[id].bytes, "momentum_buffer");
    }
    MuonStep step(&edit, at);
    for (const ParameterId id : matrices) step.Update(stream[id]);
    step.End();
    std::vector<RequestId> roots;  // torch/optim/adam.py, _multi_tensor_adam
    roots.reserve(others.size());
    for (const ParameterId id : others) {
      if (!at.first) continue;
      edit.AddState(at, id, stream[id].bytes, "exp_avg");
      edit.AddState(at, id, stream[id].bytes, "exp_avg_sq");
    }
    for (const ParameterId id : others) roots.push_back(edit.Take(at, stream[id].bytes));
    for (const RequestId root : roots) edit.Give(at, root);
  }
  Stream edited = std::move(edit).Finish();
  edited.facts.optimizers = {"Muon", "AdamW"};
  return edited;
}

}  // namespace vramtrace::forecast
