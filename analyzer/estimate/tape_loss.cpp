// The head and the loss: for vocabularies above 100,000 often the largest part of the peak.

#include <algorithm>
#include <bit>

#include "analyzer/estimate/tape.h"

namespace vramtrace::estimate {

void Tape::Logits(Value hidden, const LinearShape& head) {
  LinearShape shape = head;
  shape.role = Role::kHead;
  const uint64_t positions = options_.whole_logits ? Tokens() : options_.batch;
  const Value last = View(hidden, positions * head.in);
  Hold(Linear(last, shape));
}

// transformers/loss/loss_utils.py, ForCausalLMLoss: logits.float(), then cross_entropy, which is log_softmax
// (its output is kept) and nll_loss (its backward makes a gradient as large as the log-probabilities). The
// model's output holds the logits until the loss is taken out of it.
void Tape::CrossEntropy(Value hidden, const LinearShape& head, bool softcap) {
  if (options_.fused_loss) return FusedLoss(hidden, head);
  if (options_.chunked_loss) return ChunkedLoss(hidden, head);
  LinearShape shape = head;
  shape.role = Role::kHead;
  Value logits = Linear(hidden, shape);
  if (softcap) logits = Scale(Tanh(Scale(logits)));
  Hold(logits);
  const Value fp32 = logits.dtype == Dtype::kFp32 ? logits : Cast(logits, Dtype::kFp32);
  const Value log_probabilities = Make(fp32.elements, Dtype::kFp32, fp32.requires_grad, Class::kLogits);
  Operation& softmax = Emit({fp32}, {log_probabilities});
  Keep(softmax, log_probabilities);
  GradientOf(softmax, fp32);
  const Value loss = Make(1, Dtype::kFp32, fp32.requires_grad, Class::kLogits);
  GradientOf(Emit({log_probabilities}, {loss}), log_probabilities);
}

// torchtune's CEWithChunkedOutputLoss: the logits are whole, in the model's dtype; FP32 exists for an eighth
// at a time.
void Tape::ChunkedLoss(Value hidden, const LinearShape& head) {
  constexpr uint64_t kChunks = 8;
  LinearShape shape = head;
  shape.role = Role::kHead;
  const Value logits = Linear(hidden, shape);
  Hold(logits);
  const Value loss = Make(1, Dtype::kFp32, logits.requires_grad, Class::kLogits);
  Operation& operation = Emit({logits}, {loss});
  Keep(operation, logits);
  GradientOf(operation, logits);
  operation.forward_temporary = 2 * Bytes(logits.elements / kChunks, Dtype::kFp32);
  operation.backward_temporary = 3 * Bytes(logits.elements / kChunks, Dtype::kFp32);
  operation.temporary_kind = Class::kLogits;
}

// Liger's fused linear cross entropy (ops/fused_linear_cross_entropy.py): the forward makes the gradients of
// the hidden states and of the head's weight, over pieces of the tokens; the logits of one piece exist at a
// time.
void Tape::FusedLoss(Value hidden, const LinearShape& head) {
  const uint64_t vocabulary = Local(head.out);
  const int weight =
      head.tied_to >= 0 ? head.tied_to : AddParameter(head.out, head.in, Role::kHead, Split::kColumn);
  if (too_large_ || head.in == 0) return;
  const bool trainable = parameters_[weight].trainable;
  const Value x = hidden.dtype == ComputeDtype() ? hidden : Cast(hidden, ComputeDtype());
  const uint64_t tokens = x.elements / head.in;
  const uint64_t pieces = (vocabulary + head.in - 1) / head.in;
  const uint64_t piece = std::min(std::bit_ceil((tokens + pieces - 1) / pieces), tokens);
  const bool needs_grad = x.requires_grad || trainable;
  const Value of_hidden = Make(x.elements, x.dtype, needs_grad, Class::kLogits);
  std::vector<Value> makes = {of_hidden};
  if (trainable) makes.push_back(Make(parameters_[weight].elements, x.dtype, needs_grad, Class::kLogits));
  Operation& operation = Emit({x}, makes);
  for (const Value& made : makes) Keep(operation, made);
  operation.forward_temporary = Bytes(piece * vocabulary, x.dtype) + Bytes(piece * vocabulary, Dtype::kFp32);
  operation.temporary_kind = Class::kLogits;
  GradientOf(operation, x);
  if (trainable) operation.parameters.push_back(weight);
}

void Tape::SmallLoss(Value logits) {
  Hold(logits);
  const Value loss = Make(1, Dtype::kFp32, logits.requires_grad, Class::kLogits);
  GradientOf(Emit({logits}, {loss}), logits);
}

}  // namespace vramtrace::estimate
