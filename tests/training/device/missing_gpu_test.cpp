// Why there is no GPU: the traces of drivers, and the option that each case lacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "training/device/open_gpu.h"

namespace perseus::device {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MissingGpuTest, ADriverOutsideOfTheContainerNeedsGpus) {
  EXPECT_THAT(why_no_gpu({true, false, false, "no NVML"}), AllOf(HasSubstr("--gpus all"), HasSubstr("nvidia.com/gpu")));
}

TEST(MissingGpuTest, AGpuWithoutNvmlNeedsTheUtilityCapability) {
  EXPECT_THAT(why_no_gpu({true, true, false, "no NVML: libnvidia-ml.so.1"}),
              AllOf(HasSubstr("no NVML: libnvidia-ml.so.1"), HasSubstr("NVIDIA_DRIVER_CAPABILITIES=compute,utility")));
}

TEST(MissingGpuTest, NvmlMayWorkAndShowNothing) { EXPECT_EQ(why_no_gpu({true, true, false, ""}), "NVML shows no GPU"); }

TEST(MissingGpuTest, AnAmdGpuNeedsZeusd) {
  EXPECT_THAT(why_no_gpu({false, false, true, "no NVML"}), HasSubstr("ZEUSD_SOCK_PATH"));
}

TEST(MissingGpuTest, AMachineWithoutDriversMayReportNoGpu) {
  EXPECT_THAT(why_no_gpu({false, false, false, "no NVML"}),
              AllOf(HasSubstr("no GPU driver"), HasSubstr("PERSEUS_DEVICE=none")));
}

TEST(MissingGpuTest, TracesAreFilesOfTheDrivers) {
  std::string root = (std::filesystem::temp_directory_path() / "perseus_traces_XXXXXX").string();
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  const auto touch = [&](const std::string& path) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << "driver\n";
  };
  EXPECT_FALSE(gpu_traces(root).nvidia_driver || gpu_traces(root).nvidia_node || gpu_traces(root).amd_node);
  touch("/proc/driver/nvidia/version");
  EXPECT_TRUE(gpu_traces(root).nvidia_driver);
  EXPECT_FALSE(gpu_traces(root).nvidia_node);
  touch("/dev/nvidiactl");
  touch("/dev/kfd");
  EXPECT_TRUE(gpu_traces(root).nvidia_node);
  EXPECT_TRUE(gpu_traces(root).amd_node);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace perseus::device
