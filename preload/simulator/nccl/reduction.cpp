#include "preload/simulator/nccl/reduction.h"

#include <cmath>
#include <cstring>
#include <mutex>
#include <vector>

#include "preload/simulator/nccl/communicator.h"

namespace vramtrace::simulator::nccl {
namespace {

template <typename Value>
double LoadAs(const void* element) {
  Value value;
  std::memcpy(&value, element, sizeof value);
  return static_cast<double>(value);
}

template <typename Value>
void SaveAs(void* element, double value) {
  const Value converted = static_cast<Value>(value);
  std::memcpy(element, &converted, sizeof converted);
}

// Sums of 64-bit integers must not pass through a double.
template <typename Value>
void MultiplyInteger(void* element, uint64_t factor) {
  Value value;
  std::memcpy(&value, element, sizeof value);
  value = static_cast<Value>(static_cast<uint64_t>(value) * factor);
  std::memcpy(element, &value, sizeof value);
}

double HalfToDouble(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  double magnitude = 0;
  if (exponent == 31) {
    magnitude = mantissa != 0 ? NAN : INFINITY;
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, -24);
  } else {
    magnitude = std::ldexp(1024 + mantissa, exponent - 25);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

// Rounds to nearest even, as the hardware does.
uint16_t DoubleToHalf(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (magnitude >= 65520.0) return sign | 0x7c00;  // rounds to infinity
  if (magnitude < std::ldexp(1.0, -14)) {
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(magnitude, 24))));
  }
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);                         // in [0.5, 1)
  const int mantissa = static_cast<int>(std::nearbyint(std::ldexp(fraction, 11)));  // 1024 to 2048
  return static_cast<uint16_t>(sign | ((exponent + 13) * 1024 + mantissa));
}

double Bfloat16ToDouble(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return static_cast<double>(value);
}

uint16_t DoubleToBfloat16(double value) {
  const float narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Scalars of the operations made by ncclRedOpCreatePreMulSum; entry i is operation ncclNumOps + i.
std::mutex g_scalars_mutex;
std::vector<double>& Scalars() {
  static auto* scalars = new std::vector<double>;  // outlives static destructors, which may still reduce
  return *scalars;
}

bool MultiplyByRanks(void* element, ncclDataType_t type, int ranks) {
  const uint64_t factor = static_cast<uint64_t>(ranks);
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      MultiplyInteger<uint8_t>(element, factor);
      return true;
    case ncclInt32:
    case ncclUint32:
      MultiplyInteger<uint32_t>(element, factor);
      return true;
    case ncclInt64:
    case ncclUint64:
      MultiplyInteger<uint64_t>(element, factor);
      return true;
    default:
      return false;
  }
}

}  // namespace

double Load(const void* element, ncclDataType_t type) {
  uint16_t half = 0;
  switch (type) {
    case ncclInt8:
      return LoadAs<int8_t>(element);
    case ncclUint8:
      return LoadAs<uint8_t>(element);
    case ncclInt32:
      return LoadAs<int32_t>(element);
    case ncclUint32:
      return LoadAs<uint32_t>(element);
    case ncclInt64:
      return LoadAs<int64_t>(element);
    case ncclUint64:
      return LoadAs<uint64_t>(element);
    case ncclFloat32:
      return LoadAs<float>(element);
    case ncclFloat64:
      return LoadAs<double>(element);
    case ncclFloat16:
      std::memcpy(&half, element, sizeof half);
      return HalfToDouble(half);
    case ncclBfloat16:
      std::memcpy(&half, element, sizeof half);
      return Bfloat16ToDouble(half);
    default:
      return 0;
  }
}

void Save(void* element, ncclDataType_t type, double value) {
  switch (type) {
    case ncclInt8:
      SaveAs<int8_t>(element, value);
      break;
    case ncclUint8:
      SaveAs<uint8_t>(element, value);
      break;
    case ncclInt32:
      SaveAs<int32_t>(element, value);
      break;
    case ncclUint32:
      SaveAs<uint32_t>(element, value);
      break;
    case ncclInt64:
      SaveAs<int64_t>(element, value);
      break;
    case ncclUint64:
      SaveAs<uint64_t>(element, value);
      break;
    case ncclFloat32:
      SaveAs<float>(element, value);
      break;
    case ncclFloat64:
      SaveAs<double>(element, value);
      break;
    case ncclFloat16: {
      const uint16_t half = DoubleToHalf(value);
      std::memcpy(element, &half, sizeof half);
      break;
    }
    case ncclBfloat16: {
      const uint16_t half = DoubleToBfloat16(value);
      std::memcpy(element, &half, sizeof half);
      break;
    }
    default:
      break;
  }
}

ncclRedOp_t CreatePreMultiplied(double scalar) {
  const std::lock_guard<std::mutex> lock(g_scalars_mutex);
  Scalars().push_back(scalar);
  return static_cast<ncclRedOp_t>(ncclNumOps + static_cast<int>(Scalars().size()) - 1);
}

double ScalarOf(ncclRedOp_t operation) {
  const std::lock_guard<std::mutex> lock(g_scalars_mutex);
  const int index = static_cast<int>(operation) - ncclNumOps;
  return index >= 0 && index < static_cast<int>(Scalars().size()) ? Scalars()[static_cast<size_t>(index)]
                                                                  : 1.0;
}

/// Without std::pow, whose newest version is glibc's of 2.29.
double Power(double base, int exponent) {
  double product = 1.0;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) product *= base;
  }
  return product;
}

bool ReduceIdentical(void* values, uint64_t count, ncclDataType_t type, ncclRedOp_t operation, int ranks) {
  const size_t width = ElementBytes(type);
  if (width == 0 || type == ncclFloat8e4m3 || type == ncclFloat8e5m2) return false;
  if (operation == ncclMin || operation == ncclMax || operation == ncclAvg || ranks == 1) {
    if (ScalarOf(operation) == 1.0) return true;
  }
  const double factor = ranks * ScalarOf(operation);
  auto* element = static_cast<unsigned char*>(values);
  for (uint64_t i = 0; i < count; ++i, element += width) {
    if (operation == ncclProd) {
      Save(element, type, Power(Load(element, type), ranks));
    } else if (operation != ncclSum || !MultiplyByRanks(element, type, ranks)) {
      Save(element, type, Load(element, type) * factor);
    }
  }
  return true;
}

bool CanCombine(ncclDataType_t type, ncclRedOp_t operation) {
  return ElementBytes(type) != 0 && type != ncclFloat8e4m3 && type != ncclFloat8e5m2 && operation >= 0;
}

namespace {

// 64-bit integers must not pass through a double.
template <typename Value>
void CombineIntegers(void* values, const void* others, uint64_t count, ncclRedOp_t operation) {
  for (uint64_t i = 0; i < count; ++i) {
    Value mine;
    Value other;
    std::memcpy(&mine, static_cast<char*>(values) + i * sizeof mine, sizeof mine);
    std::memcpy(&other, static_cast<const char*>(others) + i * sizeof other, sizeof other);
    const auto a = static_cast<uint64_t>(mine);
    const auto b = static_cast<uint64_t>(other);
    if (operation == ncclMin) {
      mine = other < mine ? other : mine;
    } else if (operation == ncclMax) {
      mine = other > mine ? other : mine;
    } else {
      mine = static_cast<Value>(operation == ncclProd ? a * b : a + b);
    }
    std::memcpy(static_cast<char*>(values) + i * sizeof mine, &mine, sizeof mine);
  }
}

}  // namespace

void Combine(void* values, const void* others, uint64_t count, ncclDataType_t type, ncclRedOp_t operation) {
  if (type == ncclInt64) return CombineIntegers<int64_t>(values, others, count, operation);
  if (type == ncclUint64) return CombineIntegers<uint64_t>(values, others, count, operation);
  const size_t width = ElementBytes(type);
  for (uint64_t i = 0; i < count; ++i) {
    void* at = static_cast<char*>(values) + i * width;
    const double mine = Load(at, type);
    const double other = Load(static_cast<const char*>(others) + i * width, type);
    double result = mine + other;
    if (operation == ncclProd) result = mine * other;
    if (operation == ncclMin) result = other < mine ? other : mine;
    if (operation == ncclMax) result = other > mine ? other : mine;
    Save(at, type, result);
  }
}

void ScaleBefore(void* values, uint64_t count, ncclDataType_t type, ncclRedOp_t operation) {
  const double scalar = ScalarOf(operation);
  if (scalar == 1.0) return;
  for (uint64_t i = 0; i < count; ++i) {
    void* at = static_cast<char*>(values) + i * ElementBytes(type);
    Save(at, type, Load(at, type) * scalar);
  }
}

void DivideAfter(void* values, uint64_t count, ncclDataType_t type, ncclRedOp_t operation, int ranks) {
  if (operation != ncclAvg) return;
  for (uint64_t i = 0; i < count; ++i) {
    void* at = static_cast<char*>(values) + i * ElementBytes(type);
    Save(at, type, Load(at, type) / ranks);
  }
}

}  // namespace vramtrace::simulator::nccl
