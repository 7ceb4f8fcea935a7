#pragma once
// Descriptors of cuDNN's backend (graph) interface: typed bags of attributes that a program fills and
// finalizes. What the library itself would compute from them is in backend_answers.h.

#include <cudnn.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace vramtrace::simulator::cudnn {

struct BackendContent;
using BackendContentRef = std::shared_ptr<BackendContent>;

struct BackendAttribute {
  cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64;
  int64_t count = 0;
  std::vector<unsigned char> bytes;
  // Of CUDNN_TYPE_BACKEND_DESCRIPTOR: what the given descriptors held. A program may destroy a descriptor
  // once another refers to it, so the handles alone would dangle.
  std::vector<BackendContentRef> descriptors;
};

struct BackendContent {
  cudnnBackendDescriptorType_t type = CUDNN_BACKEND_POINTWISE_DESCRIPTOR;
  bool finalized = false;
  std::map<int, BackendAttribute> attributes;

  // nullptr when it was never set.
  [[nodiscard]] const BackendAttribute* Find(cudnnBackendAttributeName_t name) const;
  // The first descriptor of an attribute, null when there is none.
  [[nodiscard]] BackendContentRef FindDescriptor(cudnnBackendAttributeName_t name) const;
};

// What a cudnnBackendDescriptor_t points to.
class BackendDescriptor {
 public:
  explicit BackendDescriptor(cudnnBackendDescriptorType_t type);

  // nullptr when the pointer is null or no descriptor of ours.
  [[nodiscard]] static BackendDescriptor* From(cudnnBackendDescriptor_t pointer);
  void Retire() { mark_ = 0; }

  [[nodiscard]] const BackendContent& content() const { return *content_; }
  void Finalize() { content_->finalized = true; }
  // Takes over what another descriptor of the same type holds; both share it from then on.
  cudnnStatus_t Fill(BackendContentRef content);

  cudnnStatus_t Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                    const void* elements);
  // Attributes that were set. Elements of CUDNN_TYPE_BACKEND_DESCRIPTOR are the caller's own descriptors,
  // which are filled. With `requested` 0 only *count is written, as documented. CUDNN_STATUS_NOT_SUPPORTED
  // when the attribute was never set.
  cudnnStatus_t Get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t requested,
                    int64_t* count, void* elements) const;

 private:
  static constexpr uint64_t kMark = 0x644e4e6264657363;
  uint64_t mark_ = kMark;
  BackendContentRef content_;
};

// Bytes of one element of an attribute type, 0 for a type the headers do not know.
[[nodiscard]] size_t AttributeElementBytes(cudnnBackendAttributeType_t type);

}  // namespace vramtrace::simulator::cudnn
