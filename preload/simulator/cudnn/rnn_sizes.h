#pragma once
// Sizes of recurrent networks. The weight space is laid out as cuDNN documents it through
// cudnnGetRNNWeightParams: for each pseudo-layer the input matrices of its gates, the recurrent matrices, the
// projection; after all matrices the biases. Its size is exact: the number of parameters. Workspace and
// reserve space are not published; the formulas are ours (README.md, What is modelled).

#include <cudnn.h>

#include <cstdint>

namespace vramtrace::simulator::cudnn {

struct RnnShape {
  cudnnRNNMode_t cell = CUDNN_LSTM;
  cudnnRNNBiasMode_t bias = CUDNN_RNN_DOUBLE_BIAS;
  cudnnDirectionMode_t direction = CUDNN_UNIDIRECTIONAL;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int input = 0;
  int hidden = 0;
  int projection = 0;  // equal to hidden or 0: none
  int layers = 0;

  [[nodiscard]] int Gates() const { return cell == CUDNN_LSTM ? 4 : cell == CUDNN_GRU ? 3 : 1; }
  [[nodiscard]] int Directions() const { return direction == CUDNN_BIDIRECTIONAL ? 2 : 1; }
  [[nodiscard]] int PseudoLayers() const { return layers * Directions(); }
  [[nodiscard]] int Biases() const;
  [[nodiscard]] bool HasProjection() const { return projection != 0 && projection != hidden; }
  [[nodiscard]] int Output() const { return HasProjection() ? projection : hidden; }
  // Width of what enters a pseudo-layer: the input, or both directions' outputs of the layer below.
  [[nodiscard]] int InputWidth(int pseudo_layer) const;
};

// A matrix or bias inside the weight space; `rows` 0 when there is none.
struct RnnPart {
  uint64_t offset_bytes = 0;
  int rows = 0;
  int columns = 0;
};

[[nodiscard]] uint64_t RnnWeightBytes(const RnnShape& shape);
// `linear_layer`: input gates first, then recurrent gates, then the projection (2 * gates).
[[nodiscard]] RnnPart RnnMatrix(const RnnShape& shape, int pseudo_layer, int linear_layer);
[[nodiscard]] RnnPart RnnBias(const RnnShape& shape, int pseudo_layer, int linear_layer);

[[nodiscard]] uint64_t RnnWorkspaceBytes(const RnnShape& shape, int sequence, int batch);
[[nodiscard]] uint64_t RnnReserveBytes(const RnnShape& shape, int sequence, int batch);

}  // namespace vramtrace::simulator::cudnn
