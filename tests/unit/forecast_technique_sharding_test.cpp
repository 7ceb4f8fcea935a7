// What one of several cards holds.

#include <gtest/gtest.h>

#include "tests/unit/forecast_technique_model.h"

namespace vramtrace::forecast {
namespace {

using testing::Apply;
using testing::kTable;
using testing::kWeight;
using testing::LinearModel;

constexpr Bytes kWeights = kTable + 4 * kWeight;

// Bytes of a class that are alive when the last step's optimizer begins.
Bytes AtStep(const Stream& stream, MemoryClass memory_class) {
  Bytes alive = 0;
  Bytes found = 0;
  for (const Event& event : stream.events) {
    if (event.kind == EventKind::kStepEnd) continue;
    const Request& request = stream[event.request];
    const bool temporary = request.memory_class == MemoryClass::kTemporary;
    if (stream.SiteOf(request).phase == Phase::kOptimizer && temporary) found = alive;
    if (request.memory_class != memory_class) continue;
    alive += event.kind == EventKind::kAllocate ? request.bytes : 0 - request.bytes;
  }
  return found;
}

TEST(ZeroTest, SharesWhatItsStageSays) {
  struct Row {
    const char* text;
    Bytes weights, gradients, state;
  };
  const Row rows[] = {{"zero1:cards=4", kWeights, kWeights, 2 * kWeights / 4},
                      {"zero2:cards=4", kWeights, kWeights / 4, 2 * kWeights / 4},
                      {"zero3:cards=4", kWeights / 4, kWeights / 4, 2 * kWeights / 4}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    LinearModel model;
    const Stream edited = std::get<Stream>(Apply(model.stream(), row.text));
    EXPECT_EQ(AtStep(edited, MemoryClass::kWeight), row.weights);
    EXPECT_EQ(AtStep(edited, MemoryClass::kGradient), row.gradients);
    EXPECT_EQ(AtStep(edited, MemoryClass::kOptimizerState), row.state);
    EXPECT_EQ(AtStep(edited, MemoryClass::kCommunication), 0U);
  }
}

TEST(ZeroTest, FreesEveryBuffer) {
  LinearModel model;
  const Stream edited = std::get<Stream>(Apply(model.stream(), "zero3:cards=8"));
  std::vector<int> alive(edited.requests.size());
  for (const Event& event : edited.events) {
    if (event.kind == EventKind::kStepEnd) continue;
    int& count = alive[static_cast<size_t>(event.request)];
    count += event.kind == EventKind::kAllocate ? 1 : -1;
    ASSERT_TRUE(count == 0 || count == 1);
  }
  for (size_t i = 0; i < alive.size(); ++i) {
    if (edited.requests[i].memory_class != MemoryClass::kCommunication) continue;
    EXPECT_EQ(alive[i], 0) << i;
  }
}

TEST(ZeroTest, CountsTheCommunicatorBesideTheAllocator) {
  ReplayOptions options;
  FindTechnique("zero1")->settings(&options, {});
  EXPECT_EQ(options.elsewhere, Bytes{1536} << 20);
}

// Two linear layers in each block: the first by columns, the second by rows.
class PairModel : public LinearModel {
 public:
  PairModel() {
    for (uint32_t i = 0; i < stream().modules.size(); ++i) Move(&stream().modules[i].path);
    for (forecast::Site& site : stream().sites) Move(&site.module_path);
    for (Parameter& parameter : stream().parameters) {
      Move(&parameter.module_path);
      parameter.name = parameter.module_path + ".weight";
    }
    stream().modules.push_back({"layers.1", "Block"});
    stream().modules.push_back({"layers.1.fc", "ReLU"});
  }

 private:
  // Layers 0 and 1 become "layers.0.a" and "layers.0.b", layer 2 "other".
  static void Move(std::string* path) {
    if (*path == "layers.0.fc") *path = "layers.0.a";
    if (*path == "layers.1.fc") *path = "layers.0.b";
    if (*path == "layers.2.fc") *path = "other";
  }
};

TEST(TensorParallelTest, DividesLayersAndWhatLiesBetween) {
  PairModel model;
  const Stream edited = std::get<Stream>(Apply(model.stream(), "tensor-parallel:cards=4"));
  // Embedding, head and the pair are split; the layer between blocks is not.
  EXPECT_EQ(AtStep(edited, MemoryClass::kWeight), (kTable + 3 * kWeight) / 4 + kWeight);
  EXPECT_EQ(AtStep(edited, MemoryClass::kOptimizerState), 2 * ((kTable + 3 * kWeight) / 4 + kWeight));
}

TEST(TensorParallelTest, IsRefusedWithoutAPair) {
  LinearModel model;
  EXPECT_EQ(
      std::get<std::string>(Apply(model.stream(), "tensor-parallel")),
      "tensor-parallel cannot be applied: no pair of linear layers inside a repeated block was found to "
      "be split");
}

}  // namespace
}  // namespace vramtrace::forecast
