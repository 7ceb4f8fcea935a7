#include "preload/simulator/cudnn/backend_descriptor.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace vramtrace::simulator::cudnn {

size_t AttributeElementBytes(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
      return 8;
    case CUDNN_TYPE_FRACTION:
      return sizeof(cudnnFraction_t);
    default:
      break;
  }
  // What is left are 32-bit numbers and enumerations; they are numbered without a gap.
  return type >= CUDNN_TYPE_HANDLE && type <= CUDNN_TYPE_OPERATIONGRAPH_MODE ? 4 : 0;
}

const BackendAttribute* BackendContent::Find(cudnnBackendAttributeName_t name) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? nullptr : &found->second;
}

BackendContentRef BackendContent::FindDescriptor(cudnnBackendAttributeName_t name) const {
  const BackendAttribute* attribute = Find(name);
  return attribute == nullptr || attribute->descriptors.empty() ? nullptr : attribute->descriptors.front();
}

BackendDescriptor::BackendDescriptor(cudnnBackendDescriptorType_t type)
    : content_(std::make_shared<BackendContent>()) {
  content_->type = type;
}

BackendDescriptor* BackendDescriptor::From(cudnnBackendDescriptor_t pointer) {
  auto* descriptor = static_cast<BackendDescriptor*>(pointer);
  return descriptor != nullptr && descriptor->mark_ == kMark ? descriptor : nullptr;
}

cudnnStatus_t BackendDescriptor::Fill(BackendContentRef content) {
  if (content->type != content_->type) return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
  content_ = std::move(content);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t BackendDescriptor::Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                     int64_t count, const void* elements) {
  const size_t element = AttributeElementBytes(type);
  if (element == 0) return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
  if (count < 0 || (count > 0 && elements == nullptr)) return CUDNN_STATUS_BAD_PARAM;
  BackendAttribute attribute{type, count, {}, {}};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const auto* pointers = static_cast<const cudnnBackendDescriptor_t*>(elements);
    for (int64_t i = 0; i < count; ++i) {
      const BackendDescriptor* descriptor = From(pointers[i]);
      if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM;
      attribute.descriptors.push_back(descriptor->content_);
    }
  } else if (count > 0) {
    const auto* bytes = static_cast<const unsigned char*>(elements);
    attribute.bytes.assign(bytes, bytes + static_cast<size_t>(count) * element);
  }
  content_->attributes[name] = std::move(attribute);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t BackendDescriptor::Get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                     int64_t requested, int64_t* count, void* elements) const {
  const BackendAttribute* attribute = content_->Find(name);
  if (attribute == nullptr) return CUDNN_STATUS_NOT_SUPPORTED;
  if (attribute->type != type) return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
  if (count != nullptr) *count = attribute->count;
  const int64_t given = std::min(requested, attribute->count);
  if (given <= 0) return CUDNN_STATUS_SUCCESS;
  if (elements == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    std::memcpy(elements, attribute->bytes.data(), static_cast<size_t>(given) * AttributeElementBytes(type));
    return CUDNN_STATUS_SUCCESS;
  }
  for (int64_t i = 0; i < given; ++i) {
    BackendDescriptor* filled = From(static_cast<cudnnBackendDescriptor_t*>(elements)[i]);
    if (filled == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const cudnnStatus_t status = filled->Fill(attribute->descriptors[static_cast<size_t>(i)]);
    if (status != CUDNN_STATUS_SUCCESS) return status;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace vramtrace::simulator::cudnn
