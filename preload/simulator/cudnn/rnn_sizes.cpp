#include "preload/simulator/cudnn/rnn_sizes.h"

#include "preload/simulator/cudnn/handle.h"

namespace vramtrace::simulator::cudnn {
namespace {

uint64_t Elements(int rows, int columns) {
  return static_cast<uint64_t>(rows) * static_cast<uint64_t>(columns);
}

uint64_t MatrixElements(const RnnShape& shape, int pseudo_layer) {
  const uint64_t gates = static_cast<uint64_t>(shape.Gates());
  uint64_t elements = gates * (Elements(shape.hidden, shape.InputWidth(pseudo_layer)) +
                               Elements(shape.hidden, shape.Output()));
  if (shape.HasProjection()) elements += Elements(shape.projection, shape.hidden);
  return elements;
}

uint64_t MatrixElementsBefore(const RnnShape& shape, int pseudo_layer) {
  uint64_t elements = 0;
  for (int i = 0; i < pseudo_layer; ++i) elements += MatrixElements(shape, i);
  return elements;
}

// Every sequence step of every batch element.
uint64_t Steps(int sequence, int batch) { return Elements(sequence, batch); }

}  // namespace

int RnnShape::Biases() const {
  switch (bias) {
    case CUDNN_RNN_NO_BIAS:
      return 0;
    case CUDNN_RNN_DOUBLE_BIAS:
      return 2;
    default:
      return 1;
  }
}

int RnnShape::InputWidth(int pseudo_layer) const {
  return pseudo_layer < Directions() ? input : Output() * Directions();
}

uint64_t RnnWeightBytes(const RnnShape& shape) {
  const uint64_t biases = static_cast<uint64_t>(shape.PseudoLayers()) *
                          static_cast<uint64_t>(shape.Biases()) * Elements(shape.Gates(), shape.hidden);
  return (MatrixElementsBefore(shape, shape.PseudoLayers()) + biases) * ElementBytes(shape.type);
}

RnnPart RnnMatrix(const RnnShape& shape, int pseudo_layer, int linear_layer) {
  const int gates = shape.Gates();
  const int width = shape.InputWidth(pseudo_layer);
  uint64_t offset = MatrixElementsBefore(shape, pseudo_layer);
  RnnPart part;
  if (linear_layer < gates) {
    part = {offset + static_cast<uint64_t>(linear_layer) * Elements(shape.hidden, width), shape.hidden,
            width};
  } else if (linear_layer < 2 * gates) {
    offset += static_cast<uint64_t>(gates) * Elements(shape.hidden, width);
    part = {offset + static_cast<uint64_t>(linear_layer - gates) * Elements(shape.hidden, shape.Output()),
            shape.hidden, shape.Output()};
  } else if (linear_layer == 2 * gates && shape.HasProjection()) {
    offset += static_cast<uint64_t>(gates) *
              (Elements(shape.hidden, width) + Elements(shape.hidden, shape.Output()));
    part = {offset, shape.projection, shape.hidden};
  }
  part.offset_bytes *= ElementBytes(shape.type);
  return part;
}

RnnPart RnnBias(const RnnShape& shape, int pseudo_layer, int linear_layer) {
  const int gates = shape.Gates();
  // With a single bias it belongs to the input or to the recurrent gates.
  const bool recurrent = shape.bias == CUDNN_RNN_SINGLE_REC_BIAS;
  const int first = recurrent ? gates : 0;
  const int kept = shape.Biases() * gates;
  if (linear_layer < first || linear_layer >= first + kept) return {};
  const uint64_t index = static_cast<uint64_t>(pseudo_layer) * static_cast<uint64_t>(kept) +
                         static_cast<uint64_t>(linear_layer - first);
  const uint64_t offset =
      MatrixElementsBefore(shape, shape.PseudoLayers()) + index * static_cast<uint64_t>(shape.hidden);
  return {offset * ElementBytes(shape.type), shape.hidden, 1};
}

uint64_t RnnWorkspaceBytes(const RnnShape& shape, int sequence, int batch) {
  return Steps(sequence, batch) * Elements(shape.hidden, shape.Gates() * shape.Directions()) *
         ElementBytes(shape.type);
}

uint64_t RnnReserveBytes(const RnnShape& shape, int sequence, int batch) {
  return Steps(sequence, batch) * Elements(shape.hidden, (shape.Gates() + 2) * shape.PseudoLayers()) *
         ElementBytes(shape.type);
}

}  // namespace vramtrace::simulator::cudnn
