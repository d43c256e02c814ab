#include "planning/partitioner/gpu_model.h"

#include <gtest/gtest.h>

namespace perseus::partitioner {
namespace {

TEST(GpuModel, IsFoundByTheNameThatTheDriverGives) {
  const auto known_as = [](std::string_view device) {
    const auto gpu = gpu_of_device(device);
    return gpu ? std::string(gpu->name) : "";
  };
  EXPECT_EQ(known_as("NVIDIA A40"), "A40");
  EXPECT_EQ(known_as("NVIDIA A100-SXM4-80GB"), "A100-SXM");
  EXPECT_EQ(known_as("NVIDIA A100-PCIE-40GB"), "A100-PCIe");
  EXPECT_EQ(known_as("NVIDIA A100 80GB PCIe"), "A100-PCIe");
  EXPECT_EQ(known_as("NVIDIA H100 80GB HBM3"), "H100-SXM");
  EXPECT_EQ(known_as("NVIDIA H200"), "H200-SXM");
  EXPECT_EQ(known_as("NVIDIA B200"), "B200-SXM");
  for (const char* other : {"", "NVIDIA", "NVIDIA L40S", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H200 NVL",
                            "NVIDIA GH200 480GB", "NVIDIA A4000", "Perseus simulated GPU", "AMD Instinct MI300X"}) {
    EXPECT_EQ(known_as(other), "") << other;
  }
}

}  // namespace
}  // namespace perseus::partitioner
