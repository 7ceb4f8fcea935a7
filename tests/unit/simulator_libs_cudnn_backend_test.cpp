// The backend interface as cudnn_frontend drives it: graph, heuristics, configuration, plan, execution.

#include <cudnn.h>
#include <gtest/gtest.h>

#include <climits>
#include <cstdint>

namespace {

using Descriptor = cudnnBackendDescriptor_t;

Descriptor Make(cudnnBackendDescriptorType_t type) {
  Descriptor descriptor = nullptr;
  EXPECT_EQ(cudnnBackendCreateDescriptor(type, &descriptor), CUDNN_STATUS_SUCCESS);
  return descriptor;
}

void Refer(Descriptor from, cudnnBackendAttributeName_t name, Descriptor to) {
  EXPECT_EQ(cudnnBackendSetAttribute(from, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to),
            CUDNN_STATUS_SUCCESS);
}

void Finalize(Descriptor descriptor) { EXPECT_EQ(cudnnBackendFinalize(descriptor), CUDNN_STATUS_SUCCESS); }
void Destroy(Descriptor descriptor) {
  EXPECT_EQ(cudnnBackendDestroyDescriptor(descriptor), CUDNN_STATUS_SUCCESS);
}

class Backend : public testing::Test {
 protected:
  void SetUp() override {
    graph_ = Make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    Finalize(graph_);
    heuristics_ = Make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    Refer(heuristics_, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_);
    Finalize(heuristics_);
    configuration_ = Make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    int64_t count = 0;
    ASSERT_EQ(cudnnBackendGetAttribute(heuristics_, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &configuration_),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(count, 1);
  }
  void TearDown() override {
    Destroy(configuration_);
    Destroy(heuristics_);
    Destroy(graph_);
  }
  Descriptor graph_ = nullptr;
  Descriptor heuristics_ = nullptr;
  Descriptor configuration_ = nullptr;
};

TEST_F(Backend, CountAloneTouchesNoElements) {
  int64_t count = -1;
  Descriptor untouched = nullptr;
  EXPECT_EQ(cudnnBackendGetAttribute(heuristics_, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, &untouched),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(untouched, nullptr);
}

// cudnn_frontend keeps INT32_MAX here unless it is answered, and then rejects the plan.
TEST_F(Backend, SharedMemoryIsAnswered) {
  int32_t bytes = INT32_MAX;
  int64_t count = 0;
  EXPECT_EQ(cudnnBackendGetAttribute(configuration_, CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED,
                                     CUDNN_TYPE_INT32, 1, &count, &bytes),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(bytes, 0);
}

TEST_F(Backend, NotesAndKnobsAreEmpty) {
  Descriptor engine = Make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  int64_t count = 0;
  ASSERT_EQ(cudnnBackendGetAttribute(configuration_, CUDNN_ATTR_ENGINECFG_ENGINE,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(count, 1);
  count = -1;
  EXPECT_EQ(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 0,
                                     &count, nullptr),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 0);
  count = -1;
  EXPECT_EQ(cudnnBackendGetAttribute(configuration_, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 0);
  int64_t index = -1;
  EXPECT_EQ(
      cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &index),
      CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(index, 0);
  Destroy(engine);
}

// The engine leads back to the graph, even when the program has destroyed its own descriptors meanwhile.
TEST_F(Backend, EngineKeepsItsGraph) {
  Descriptor graph = Make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  bool dynamic = true;
  ASSERT_EQ(cudnnBackendSetAttribute(graph, CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED,
                                     CUDNN_TYPE_BOOLEAN, 1, &dynamic),
            CUDNN_STATUS_SUCCESS);
  Finalize(graph);
  Descriptor heuristics = Make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  Refer(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  Finalize(heuristics);
  Destroy(graph);
  Descriptor configuration = Make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  Descriptor engine = Make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  Descriptor found = Make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  int64_t count = 0;
  ASSERT_EQ(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                     1, &count, &configuration),
            CUDNN_STATUS_SUCCESS);
  Destroy(heuristics);
  ASSERT_EQ(cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine),
            CUDNN_STATUS_SUCCESS);
  Destroy(configuration);
  ASSERT_EQ(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                     1, &count, &found),
            CUDNN_STATUS_SUCCESS);
  Destroy(engine);
  dynamic = false;
  EXPECT_EQ(cudnnBackendGetAttribute(found, CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED,
                                     CUDNN_TYPE_BOOLEAN, 1, &count, &dynamic),
            CUDNN_STATUS_SUCCESS);
  EXPECT_TRUE(dynamic);
  Destroy(found);
}

TEST_F(Backend, UnknownAttributeIsRefusedAndLeavesTheCallerAlone) {
  int64_t count = 77;
  int64_t value = 88;
  EXPECT_EQ(cudnnBackendGetAttribute(configuration_, CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_TYPE_INT64, 1,
                                     &count, &value),
            CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(count, 77);
  EXPECT_EQ(value, 88);
}

TEST_F(Backend, TypesAreChecked) {
  int64_t count = 0;
  int64_t value = 0;
  EXPECT_EQ(cudnnBackendGetAttribute(configuration_, CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED,
                                     CUDNN_TYPE_INT64, 1, &count, &value),
            CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  Descriptor tensor = Make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  EXPECT_EQ(cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                     static_cast<cudnnBackendAttributeType_t>(60), 1, &value),
            CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  Destroy(tensor);
}

TEST_F(Backend, ValuesComeBackAsGiven) {
  Descriptor tensor = Make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const int64_t sizes[] = {64, 3, 224, 224};
  ASSERT_EQ(cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes),
            CUDNN_STATUS_SUCCESS);
  int64_t count = 0;
  int64_t read[4] = {0, 0, -1, -1};
  EXPECT_EQ(cudnnBackendGetAttribute(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, &count, read),
            CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  Finalize(tensor);
  EXPECT_EQ(cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes),
            CUDNN_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cudnnBackendGetAttribute(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 2, &count, read),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 4);
  EXPECT_EQ(read[0], 64);
  EXPECT_EQ(read[1], 3);
  EXPECT_EQ(read[2], -1);
  Destroy(tensor);
}

TEST_F(Backend, PlanRunsOnlyWithAFinalizedPlanAndPack) {
  cudnnHandle_t handle = nullptr;
  ASSERT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
  Descriptor plan = Make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  Refer(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration_);
  Descriptor pack = Make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  EXPECT_EQ(cudnnBackendExecute(handle, plan, pack), CUDNN_STATUS_BAD_PARAM);
  Finalize(plan);
  Finalize(pack);
  int64_t workspace = -1;
  int64_t count = 0;
  EXPECT_EQ(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                     &count, &workspace),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(workspace, 0);
  EXPECT_EQ(cudnnBackendExecute(handle, plan, pack), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnBackendExecute(handle, pack, plan), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(cudnnBackendExecute(nullptr, plan, pack), CUDNN_STATUS_NOT_INITIALIZED);
  Destroy(pack);
  Destroy(plan);
  EXPECT_EQ(cudnnDestroy(handle), CUDNN_STATUS_SUCCESS);
}

}  // namespace
