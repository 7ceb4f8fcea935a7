#include <cstring>

#include "preload/simulator/cudnn/descriptors.h"
#include "preload/simulator/cudnn/handle.h"

using namespace vramtrace::simulator::cudnn;

namespace {

// Where a part lies and what shape it has; either pointer may be null: PyTorch asks for one half at a time.
void Describe(const RnnPart& part, cudnnDataType_t type, const void* base, cudnnTensorDescriptor_t descriptor,
              void** address) {
  if (address != nullptr) {
    *address = part.rows == 0
                   ? nullptr
                   : const_cast<unsigned char*>(static_cast<const unsigned char*>(base)) + part.offset_bytes;
  }
  if (Tensor* tensor = ValuesOf(descriptor)) {
    const int sizes[] = {1, part.rows, part.columns};
    tensor->SetPacked(type, sizes, 3);
  }
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t descriptor, cudnnRNNAlgo_t algorithm,
                                       cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias,
                                       cudnnDirectionMode_t direction, cudnnRNNInputMode_t input_mode,
                                       cudnnDataType_t type, cudnnDataType_t math_precision,
                                       cudnnMathType_t math_type, int32_t input, int32_t hidden,
                                       int32_t projection, int32_t layers, cudnnDropoutDescriptor_t dropout,
                                       uint32_t flags) {
  Rnn* rnn = ValuesOf(descriptor);
  if (rnn == nullptr || input <= 0 || hidden <= 0 || projection < 0 || projection > hidden || layers <= 0) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  if (ElementBytes(type) == 0) return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
  rnn->shape = {cell, bias, direction, type, input, hidden, projection, layers};
  rnn->algorithm = algorithm;
  rnn->input_mode = input_mode;
  rnn->math_precision = math_precision;
  rnn->math_type = math_type;
  rnn->dropout = dropout;
  rnn->flags = flags;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t descriptor, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int max_sequence, int batch, int vector,
                                        const int*, void*) {
  RnnData* data = ValuesOf(descriptor);
  if (data == nullptr || max_sequence <= 0 || batch <= 0 || vector <= 0) return CUDNN_STATUS_BAD_PARAM;
  *data = {type, layout, max_sequence, batch, vector};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                         size_t* bytes) {
  const Rnn* rnn = ValuesOf(descriptor);
  if (From(handle) == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  if (rnn == nullptr || bytes == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *bytes = RnnWeightBytes(rnn->shape);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                      int32_t pseudo_layer, size_t, const void* space, int32_t linear_layer,
                                      cudnnTensorDescriptor_t matrix, void** matrix_address,
                                      cudnnTensorDescriptor_t bias, void** bias_address) {
  const Rnn* rnn = ValuesOf(descriptor);
  if (From(handle) == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  if (rnn == nullptr || pseudo_layer < 0 || pseudo_layer >= rnn->shape.PseudoLayers() || linear_layer < 0 ||
      linear_layer > 2 * rnn->shape.Gates()) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const RnnShape& shape = rnn->shape;
  Describe(RnnMatrix(shape, pseudo_layer, linear_layer), shape.type, space, matrix, matrix_address);
  Describe(RnnBias(shape, pseudo_layer, linear_layer), shape.type, space, bias, bias_address);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t data_descriptor,
                                        size_t* workspace, size_t* reserve) {
  const Rnn* rnn = ValuesOf(descriptor);
  const RnnData* data = ValuesOf(data_descriptor);
  if (From(handle) == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  if (rnn == nullptr || data == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (workspace != nullptr) *workspace = RnnWorkspaceBytes(rnn->shape, data->max_sequence, data->batch);
  if (reserve != nullptr) {
    *reserve =
        mode == CUDNN_FWD_MODE_TRAINING ? RnnReserveBytes(rnn->shape, data->max_sequence, data->batch) : 0;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
