// Which GPU a rank gets, over tables of environments.
#include "training/device/visible_devices.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "environment.h"

namespace perseus::device {
namespace {

using Variables = std::map<std::string, std::string>;

/// Four GPUs in NVML's order: the order of the PCI bus, except that a bus of domain 1 comes first.
const std::vector<ListedGpu> four = {{"nvml:GPU-aa11", "GPU-aa11", "00000001:01:00.0"},
                                     {"nvml:GPU-aa22", "GPU-aa22", "00000000:81:00.0"},
                                     {"nvml:GPU-bb33", "GPU-bb33", "00000000:01:00.0"},
                                     {"nvml:GPU-cc44", "GPU-cc44", "00000000:41:00.0"}};
const std::vector<ListedGpu> one = {four[0]};

DeviceChoice choose(const std::vector<ListedGpu>& gpus, const Variables& variables, const CudaView& cuda = {},
                    std::optional<int> cuda_number = std::nullopt, int rank = 0) {
  const auto variable = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  return choose_device(gpus, cuda, variable, {cuda_number, rank});
}

struct Case {
  Variables variables;
  std::string chosen;   ///< UUID; empty: none
  std::string why_not;  ///< a part of the reason
};

class FourGpus : public ::testing::TestWithParam<Case> {};

TEST_P(FourGpus, AreChosenFromByTheEnvironment) {
  const DeviceChoice choice = choose(four, GetParam().variables);
  EXPECT_EQ(choice.selector, GetParam().chosen.empty() ? "" : "nvml:" + GetParam().chosen);
  EXPECT_THAT(choice.why_not, ::testing::HasSubstr(GetParam().why_not));
  EXPECT_EQ(choice.why_not.empty(), !GetParam().chosen.empty() || GetParam().why_not.empty());
}

Variables in_pci_order(Variables variables) {
  variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  return variables;
}

INSTANTIATE_TEST_SUITE_P(
    CudaVisibleDevices, FourGpus,
    ::testing::Values(
        // Indices count by PCI bus id; without that order their meaning is unknown.
        Case{in_pci_order({{"CUDA_VISIBLE_DEVICES", "0"}}), "GPU-bb33", ""},
        Case{in_pci_order({{"CUDA_VISIBLE_DEVICES", "3"}}), "GPU-aa11", ""},
        Case{{{"CUDA_VISIBLE_DEVICES", "3"}}, "", "CUDA_DEVICE_ORDER=PCI_BUS_ID"},
        Case{{{"CUDA_VISIBLE_DEVICES", "3"}, {"CUDA_DEVICE_ORDER", "FASTEST_FIRST"}}, "", "order of the 4 GPUs"},
        Case{in_pci_order({{"CUDA_VISIBLE_DEVICES", "2,1"}, {"LOCAL_RANK", "0"}}), "GPU-aa22", ""},
        Case{in_pci_order({{"CUDA_VISIBLE_DEVICES", "2,1"}, {"LOCAL_RANK", "1"}}), "GPU-cc44", ""},
        Case{in_pci_order({{"CUDA_VISIBLE_DEVICES", " 2 , 1 "}, {"LOCAL_RANK", "1"}}), "GPU-cc44", ""},
        Case{in_pci_order({{"CUDA_VISIBLE_DEVICES", "1gpu,2"}, {"LOCAL_RANK", "0"}}), "GPU-cc44", ""},
        // The list ends at the first invalid entry.
        Case{in_pci_order({{"CUDA_VISIBLE_DEVICES", "2,-1,1"}}), "GPU-aa22", ""},
        Case{in_pci_order({{"CUDA_VISIBLE_DEVICES", "2,x,1"}}), "GPU-aa22", ""},
        Case{in_pci_order({{"CUDA_VISIBLE_DEVICES", "2,4,1"}}), "GPU-aa22", ""},
        Case{in_pci_order({{"CUDA_VISIBLE_DEVICES", "2,GPU-aa11"}}), "GPU-aa22", ""},
        Case{in_pci_order({{"CUDA_VISIBLE_DEVICES", "2,1,4,0"}, {"LOCAL_RANK", "2"}}), "", "2 GPUs are visible"},
        Case{in_pci_order({{"CUDA_VISIBLE_DEVICES", "2,2"}}), "", "CUDA finds no GPU"},
        Case{in_pci_order({{"CUDA_VISIBLE_DEVICES", "99999999999999999999"}}), "", "CUDA finds no GPU"},
        Case{in_pci_order({{"CUDA_VISIBLE_DEVICES", "NoDevFiles"}}), "", "CUDA finds no GPU"},
        Case{{{"CUDA_VISIBLE_DEVICES", ""}, {"LOCAL_RANK", "1"}}, "", ""},
        Case{{{"CUDA_VISIBLE_DEVICES", "-1"}, {"LOCAL_RANK", "1"}}, "", ""},
        // UUIDs need no order, and a unique prefix is sufficient.
        Case{{{"CUDA_VISIBLE_DEVICES", "GPU-cc44"}}, "GPU-cc44", ""},
        Case{{{"CUDA_VISIBLE_DEVICES", "GPU-b"}}, "GPU-bb33", ""},
        Case{{{"CUDA_VISIBLE_DEVICES", "GPU-aa2,GPU-aa1"}, {"LOCAL_RANK", "1"}}, "GPU-aa11", ""},
        Case{{{"CUDA_VISIBLE_DEVICES", "GPU-aa"}}, "", "CUDA finds no GPU"},
        Case{{{"CUDA_VISIBLE_DEVICES", "GPU-aa11,GPU-aa1"}}, "", "CUDA finds no GPU"},
        Case{{{"CUDA_VISIBLE_DEVICES", "GPU-cc44,0,GPU-aa11"}}, "GPU-cc44", ""},
        Case{{{"CUDA_VISIBLE_DEVICES", "GPU-cc44,GPU-gone"}}, "GPU-cc44", ""},
        // A MIG slice stands for its whole GPU; CUDA shows the first one alone.
        Case{{{"CUDA_VISIBLE_DEVICES", "MIG-1234"}}, "MIG-1234", ""},
        Case{{{"CUDA_VISIBLE_DEVICES", " MIG-1234, MIG-5678"}, {"LOCAL_RANK", "1"}}, "MIG-1234", ""},
        Case{{{"CUDA_VISIBLE_DEVICES", "MIG-GPU-aa11/1/0"}, {"LOCAL_RANK", "0"}}, "MIG-GPU-aa11/1/0", ""}));

INSTANTIATE_TEST_SUITE_P(
    LocalRank, FourGpus,
    ::testing::Values(Case{in_pci_order({{"LOCAL_RANK", "2"}}), "GPU-aa22", ""},
                      Case{in_pci_order({{"SLURM_LOCALID", "2"}}), "GPU-aa22", ""},
                      Case{in_pci_order({{"OMPI_COMM_WORLD_LOCAL_RANK", "2"}}), "GPU-aa22", ""},
                      Case{in_pci_order({{"MV2_COMM_WORLD_LOCAL_RANK", "2"}}), "GPU-aa22", ""},
                      Case{in_pci_order({{"MPI_LOCALRANKID", "2"}}), "GPU-aa22", ""},
                      Case{in_pci_order({{"PALS_LOCAL_RANKID", "2"}}), "GPU-aa22", ""},
                      // torchrun inside srun: the number of the inner launcher.
                      Case{in_pci_order({{"LOCAL_RANK", "2"}, {"SLURM_LOCALID", "0"}}), "GPU-aa22", ""},
                      Case{in_pci_order({{"LOCAL_RANK", "two"}, {"SLURM_LOCALID", "1"}}), "GPU-cc44", ""},
                      Case{in_pci_order({{"LOCAL_RANK", "4"}}), "", "LOCAL_RANK is 4, but 4 GPUs are visible"},
                      Case{{{"LOCAL_RANK", "2"}}, "", "order of the 4 GPUs"},
                      Case{in_pci_order({}), "", "which of the 4 visible GPUs"},
                      Case{{}, "", "which of the 4 visible GPUs"},
                      // One GPU per rank, whatever its number: SLURM's --gpus-per-task.
                      Case{{{"CUDA_VISIBLE_DEVICES", "GPU-cc44"}, {"LOCAL_RANK", "3"}}, "GPU-cc44", ""}));

TEST(ChooseDevice, TheOnlyGpuNeedsNoOrder) {
  EXPECT_EQ(choose(one, {}).selector, "nvml:GPU-aa11");
  EXPECT_EQ(choose(one, {{"CUDA_VISIBLE_DEVICES", "0"}, {"LOCAL_RANK", "5"}}).selector, "nvml:GPU-aa11");
  EXPECT_EQ(choose(one, {{"CUDA_VISIBLE_DEVICES", "1"}}).selector, "");
}

TEST(ChooseDevice, NoGpuIsNoComplaint) {
  EXPECT_EQ(choose({}, {{"LOCAL_RANK", "1"}}).selector, "");
  EXPECT_EQ(choose({}, {{"LOCAL_RANK", "1"}}).why_not, "");
}

TEST(ChooseDevice, AnInitializedLibcudaKnowsItsOrder) {
  const CudaView fastest_first{{"0000:41:00.0", "0001:01:00.0"}, ""};
  EXPECT_EQ(choose(four, {{"LOCAL_RANK", "0"}}, fastest_first).selector, "nvml:GPU-cc44");
  EXPECT_EQ(choose(four, {{"LOCAL_RANK", "1"}}, fastest_first).selector, "nvml:GPU-aa11");
  EXPECT_THAT(choose(four, {}, fastest_first).why_not, ::testing::HasSubstr("which of the 2 visible GPUs"));
  EXPECT_EQ(choose(four, {{"CUDA_VISIBLE_DEVICES", "set after cuInit"}, {"LOCAL_RANK", "1"}}, fastest_first).selector,
            "nvml:GPU-aa11");
  EXPECT_THAT(choose(one, {{"LOCAL_RANK", "0"}}, fastest_first).why_not, ::testing::HasSubstr("NVML does not list"));
}

TEST(ChooseDevice, ChoosesTheThreadsContextUnlessTheLauncherNamesADevice) {
  const CudaView on_the_second{{"0000:41:00.0", "0001:01:00.0"}, "0001:01:00.0"};
  EXPECT_EQ(choose(four, {}, on_the_second).selector, "nvml:GPU-aa11");
  EXPECT_EQ(choose(four, {{"LOCAL_RANK", "1"}}, on_the_second).selector, "nvml:GPU-aa11");
  EXPECT_EQ(choose(four, {{"LOCAL_RANK", "7"}}, on_the_second).selector, "nvml:GPU-aa11") << "a rank of its own mask";
  EXPECT_THAT(choose(four, {{"LOCAL_RANK", "0"}}, on_the_second).why_not,
              ::testing::HasSubstr("context is on device 1, but LOCAL_RANK is 0"));
}

TEST(ChooseDevice, CudasNumberIsTakenWhereCudasOrderIsKnown) {
  const CudaView view{{"0000:41:00.0", "0001:01:00.0"}, "0000:41:00.0"};
  EXPECT_EQ(choose(four, {{"LOCAL_RANK", "0"}}, view, 1).selector, "nvml:GPU-aa11");
  EXPECT_EQ(choose(four, in_pci_order({}), {}, 1).selector, "nvml:GPU-cc44");
  EXPECT_EQ(choose(four, {}, {}, 1).selector, "");
  EXPECT_EQ(choose(four, {{"CUDA_VISIBLE_DEVICES", "GPU-bb,GPU-cc"}}, {}, 1).selector, "nvml:GPU-cc44");
}

/// A node of eight whose HIP numbers are not in the order of the bus: 0, 1, ... are on buses 3, 2, 1, 0, 7, 6, 5, 4.
std::vector<ListedGpu> eight_of_amd() {
  std::vector<ListedGpu> gpus;
  for (std::size_t bus = 0; bus < 8; ++bus) {
    const std::string id = "0000:0" + std::to_string(bus) + ":00.0";
    gpus.push_back({"zeusd:" + id, "", id, bus < 4 ? 3 - bus : 11 - bus});
  }
  return gpus;
}

TEST(ChooseDevice, HipCountsByTheNodesOfItsKernelDriver) {
  const auto chosen = [](const Variables& variables) { return choose(eight_of_amd(), variables).selector; };
  EXPECT_EQ(chosen({{"LOCAL_RANK", "3"}, {"HIP_VISIBLE_DEVICES", "4,5,6,7"}}), "zeusd:0000:04:00.0");
  EXPECT_EQ(chosen({{"LOCAL_RANK", "0"}}), "zeusd:0000:03:00.0");
  EXPECT_EQ(chosen({{"CUDA_VISIBLE_DEVICES", "1"}}), "zeusd:0000:02:00.0");
  EXPECT_EQ(chosen({{"CUDA_VISIBLE_DEVICES", "1"}, {"HIP_VISIBLE_DEVICES", "2"}}), "zeusd:0000:01:00.0");
  EXPECT_EQ(chosen({{"ROCR_VISIBLE_DEVICES", "6,7"}, {"HIP_VISIBLE_DEVICES", "1"}}), "zeusd:0000:04:00.0");
  EXPECT_EQ(chosen({{"HIP_VISIBLE_DEVICES", ""}}), "");
  EXPECT_THAT(choose(eight_of_amd(), {}).why_not, ::testing::HasSubstr("PERSEUS_DEVICE=zeusd:0000:43:00.0"));
  EXPECT_THAT(choose(eight_of_amd(), {{"ROCR_VISIBLE_DEVICES", "GPU-5f"}}).why_not,
              ::testing::HasSubstr("only numbers of GPUs"));
  // zeusd does not list HIP's first GPU.
  auto seven = eight_of_amd();
  seven.erase(seven.begin() + 3);
  EXPECT_THAT(choose(seven, {{"LOCAL_RANK", "0"}}).why_not, ::testing::HasSubstr("zeusd does not list that GPU"));
  EXPECT_EQ(choose(seven, {{"LOCAL_RANK", "1"}}).selector, "zeusd:0000:02:00.0");
}

TEST(ChooseDevice, OtherKinds) {
  const std::vector<ListedGpu> simulated = {{"simulated:/a", "a", ""}, {"simulated:/b", "b", ""}};
  EXPECT_EQ(choose(simulated, {}, {}, std::nullopt, 1).selector, "simulated:/b");
  EXPECT_THAT(choose(simulated, {}, {}, std::nullopt, 2).why_not, ::testing::HasSubstr("2 simulated GPUs"));
  EXPECT_EQ(choose({simulated[0], four[0]}, {}).selector, "nvml:GPU-aa11") << "real GPUs first";
}

TEST(LookAtCuda, QueriesOnlyALoadedAndInitializedLibrary) {
  Environment library("PERSEUS_CUDA", CUDA_DEVICES_STAND_IN);
  EXPECT_TRUE(look_at_cuda().bus_ids.empty()) << "not loaded by this process";
  void* const handle = ::dlopen(CUDA_DEVICES_STAND_IN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  auto& initialized = *static_cast<int*>(::dlsym(handle, "stand_in_initialized"));
  auto& current = *static_cast<int*>(::dlsym(handle, "stand_in_current_device"));
  initialized = 0;
  EXPECT_TRUE(look_at_cuda().bus_ids.empty());
  initialized = 1;
  EXPECT_THAT(look_at_cuda().bus_ids, ::testing::ElementsAre("0000:41:00.0", "0000:01:00.0"));
  EXPECT_EQ(look_at_cuda().current, "");
  current = 1;
  EXPECT_EQ(look_at_cuda().current, "0000:01:00.0");
  ::dlclose(handle);
}

}  // namespace
}  // namespace perseus::device
