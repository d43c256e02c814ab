// The unchanged NVML backend over the simulated NVML library: readings, settings, and every failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <functional>
#include <optional>

#include "environment.h"
#include "sample_gpu.h"
#include "simulation/simulated_gpu/simulated_driver.h"
#include "training/device/gpu.h"
#include "training/device/nvml_codes.h"
#include "training/device/open_gpu.h"

namespace perseus::device {
namespace {

class Nvml : public ::testing::Test {
 protected:
  void make(const std::string& name, const simulated_gpu::SimulatedGpuSpec& spec = sample_spec()) {
    auto made = simulated_gpu::SimulatedGpu::create(folder_.file(name), spec);
    ASSERT_TRUE(made) << made.error().message;
    gpus_.push_back(std::move(*made));
  }
  std::unique_ptr<Gpu> open(const std::string& selector = "nvml:0") {
    auto gpu = open_gpu(selector);
    EXPECT_TRUE(gpu) << gpu.error().message;
    return gpu ? std::move(*gpu) : nullptr;
  }
  simulated_gpu::SimulatedGpu& truth() { return *gpus_.front(); }

  ScratchFolder folder_;
  Environment library_{"PERSEUS_NVML", PERSEUS_NVML_SIMULATED};
  Environment files_{"PERSEUS_SIMULATED_GPUS", folder_.path()};
  std::vector<std::unique_ptr<simulated_gpu::SimulatedGpu>> gpus_;
};

TEST_F(Nvml, ReportsTheGpusProperties) {
  auto spec = sample_spec();
  spec.uuid = "GPU-11111111-2222-3333-4444-555555555555";
  spec.pci_bus_id = "00000000:3B:00.0";
  spec.architecture = "Hopper";
  make("a", spec);
  const auto gpu = open();
  EXPECT_EQ(gpu->identity().name, "Perseus simulated GPU");
  EXPECT_EQ(gpu->identity().uuid, spec.uuid);
  EXPECT_EQ(gpu->identity().pci_bus_id, spec.pci_bus_id);
  EXPECT_EQ(gpu->identity().architecture, "Hopper");
  EXPECT_TRUE(gpu->identity().simulated);
  EXPECT_EQ(*gpu->supported_clocks(), spec.clocks);
}

TEST_F(Nvml, ReadsTheTrueValues) {
  make("a");
  const auto gpu = open();
  EXPECT_EQ(*gpu->clock(), Megahertz(1400));
  EXPECT_EQ(*gpu->power(), Watts(50));
  EXPECT_EQ(*gpu->power_limit(), Watts(500));
  EXPECT_TRUE(gpu->clock_events()->idle);
  EXPECT_FALSE(gpu->clock_events()->throttled());
  truth().begin(0);
  EXPECT_EQ(*gpu->power(), Watts(400));
  truth().set_power_limit(Watts(250));
  EXPECT_EQ(*gpu->power_limit(), Watts(250));
  EXPECT_EQ(*gpu->clock(), Megahertz(700));
  EXPECT_TRUE(gpu->clock_events()->power_cap);
  const auto conditions = gpu->conditions();
  ASSERT_TRUE(conditions) << conditions.error().message;
  EXPECT_FALSE(conditions->mig);
  EXPECT_TRUE(conditions->persistence);
  EXPECT_FALSE(conditions->power_smoothing);
  EXPECT_FALSE(conditions->whole_module);
  EXPECT_EQ(conditions->other_processes, 0);
  EXPECT_EQ(conditions->default_power_limit, Watts(500));
}

TEST_F(Nvml, TheCounterCountsConsumedEnergy) {
  auto spec = sample_spec();
  spec.counter_refresh = Seconds(0);
  for (auto& time : spec.computations[0].time) time = Seconds(0.001);
  make("a", spec);
  const auto gpu = open();
  for (int i = 0; i < 20; ++i) truth().run(0);
  const Joules before = truth().energy();
  const auto counter = gpu->energy();
  const Joules after = truth().energy();
  EXPECT_GE(counter->value(), before.value() - 1e-3);  // whole millijoules
  EXPECT_LE(counter->value(), after.value());
}

TEST_F(Nvml, SetClocksTakeEffect) {
  make("a");
  const auto gpu = open();
  EXPECT_TRUE(gpu->lock_clock(Megahertz(350)));
  EXPECT_EQ(truth().clock(), Megahertz(350));
  EXPECT_EQ(*gpu->clock(), Megahertz(350));
  EXPECT_TRUE(truth().locked());
  EXPECT_TRUE(gpu->unlock_clock());
  EXPECT_FALSE(truth().locked());
  EXPECT_EQ(*gpu->clock(), Megahertz(1400));
}

TEST_F(Nvml, SelectsByIndexUuidItsBeginningAndBusId) {
  for (const char* name : {"a", "b", "c"}) {
    auto spec = sample_spec();
    spec.uuid = std::string("GPU-1234") + name + "678";
    spec.pci_bus_id = std::string("00000001:0") + name + ":00.0";
    spec.name = name;
    make(name, spec);
  }
  for (const char* selector :
       {"nvml:1", "nvml:GPU-1234b678", "nvml:GPU-1234b", "nvml:00000001:0B:00.0", "nvml:0001:0b:00.0", "nvml:1:0b:0"}) {
    EXPECT_EQ(open(selector)->identity().name, "b") << selector;
  }
  EXPECT_THAT(find_gpus(), ::testing::IsSupersetOf({"nvml:GPU-1234a678", "nvml:GPU-1234b678", "nvml:GPU-1234c678"}));
  const auto refusal = [](const std::string& selector) {
    const auto gpu = open_gpu(selector);
    return gpu ? DeviceError{DeviceFault::busy, "opened"} : gpu.error();
  };
  for (const char* selector : {"nvml:3", "nvml:GPU-1234", "nvml:GPU-9", "nvml:0000:09:00.0"}) {
    EXPECT_EQ(refusal(selector).fault, DeviceFault::lost) << selector << ": " << refusal(selector).message;
  }
  EXPECT_THAT(refusal("nvml:GPU-1234").message, ::testing::HasSubstr("3 GPUs begin with this"));
  for (const char* selector :
       {"nvml:", "nvml:first", "nvml:-1", "nvml:999999999999", "cuda:0", "", ":", "simulated:"}) {
    EXPECT_EQ(refusal(selector).fault, DeviceFault::not_supported) << selector << ": " << refusal(selector).message;
  }
  EXPECT_THAT(refusal("cuda:0").message, ::testing::HasSubstr("allowed: nvml:WHICH"));
}

TEST_F(Nvml, AGpuThatDoesNotTellItsUuidIsNamedByTheSelectorOrNotOpened) {
  auto spec = sample_spec();
  spec.uuid = "GPU-11111111-2222-3333-4444-555555555555";
  make("a", spec);
  for (const int code : {15, 16, 999, 4}) {
    truth().inject("nvmlDeviceGetUUID", code, -1);
    EXPECT_EQ(open("nvml:" + spec.uuid)->identity().uuid, spec.uuid);
    const auto unnamed = open_gpu("nvml:0");
    ASSERT_FALSE(unnamed) << "no lease could name it";
    EXPECT_EQ(unnamed.error().fault, fault_of_nvml(code));
    EXPECT_THAT(unnamed.error().message, ::testing::HasSubstr("nvmlDeviceGetUUID of nvml:0"));
    const FoundGpus found = find_all_gpus();
    EXPECT_THAT(found.selectors, ::testing::IsEmpty());
    ASSERT_EQ(found.failing.size(), 1U);
    EXPECT_EQ(found.failing[0].selector, "nvml:0");
  }
  truth().inject("nvmlDeviceGetUUID", 3, -1);  // a driver without UUIDs
  EXPECT_EQ(open()->identity().uuid, "");
  EXPECT_THAT(find_gpus(), ::testing::ElementsAre("nvml:0"));
}

TEST_F(Nvml, AFailureToCountIsNotNoGpu) {
  make("a");
  truth().inject("nvmlDeviceGetCount_v2", 999, -1);
  const FoundGpus found = find_all_gpus();
  EXPECT_THAT(found.selectors, ::testing::IsEmpty());
  ASSERT_EQ(found.failing.size(), 1U);
  EXPECT_THAT(found.failing[0].error.message, ::testing::HasSubstr("nvmlDeviceGetCount_v2"));
  EXPECT_THAT(why_no_gpu(gpu_traces(folder_.path())), ::testing::HasSubstr("nvmlDeviceGetCount_v2"));
}

TEST_F(Nvml, AFileThatIsNoGpuIsALostOne) {
  make("a");
  Environment both("PERSEUS_SIMULATED_GPUS", folder_.file("a") + ":/dev/null:" + folder_.file("none"));
  EXPECT_TRUE(open_gpu("nvml:0"));
  const auto broken = open_gpu("nvml:1");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().fault, DeviceFault::lost);
}

TEST_F(Nvml, AMissingLibraryOrDriverIsReported) {
  {
    Environment none("PERSEUS_NVML", "/no/such/library.so");
    const auto gpu = open_gpu("nvml:0");
    ASSERT_FALSE(gpu);
    EXPECT_EQ(gpu.error().fault, DeviceFault::no_driver);
    EXPECT_THAT(gpu.error().message, ::testing::HasSubstr("/no/such/library.so"));
  }
  {
    Environment other("PERSEUS_NVML", "libc.so.6");
    const auto gpu = open_gpu("nvml:0");
    ASSERT_FALSE(gpu);
    EXPECT_THAT(gpu.error().message, ::testing::HasSubstr("is not NVML"));
  }
  Environment nothing("PERSEUS_SIMULATED_GPUS", nullptr);
  const auto gpu = open_gpu("nvml:0");
  ASSERT_FALSE(gpu);
  EXPECT_EQ(gpu.error().fault, DeviceFault::no_driver);
  EXPECT_TRUE(find_gpus().empty());
}

TEST_F(Nvml, OtherProcessesOnTheGpuAreCounted) {
  make("a");
  truth().begin(0);  // this one does not count
  int to_child[2], from_child[2];
  ASSERT_EQ(pipe(to_child) | pipe(from_child), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    auto gpu = simulated_gpu::SimulatedGpu::attach(folder_.file("a"));
    if (gpu) (*gpu)->begin(0);
    if (write(from_child[1], &byte, 1) == 1) static_cast<void>(read(to_child[0], &byte, 1));
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(from_child[0], &byte, 1), 1);
  const auto gpu = open();
  EXPECT_EQ(gpu->conditions()->other_processes, 1);
  ASSERT_EQ(write(to_child[1], &byte, 1), 1);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(gpu->conditions()->other_processes, 0);
  for (const int fd : {to_child[0], to_child[1], from_child[0], from_child[1]}) close(fd);
}

TEST_F(Nvml, WithoutPrivilegesItReadsAndDoesNotSet) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give it up";
  auto spec = sample_spec();
  spec.needs_root = true;
  make("a", spec);
  const auto gpu = open();
  const pid_t child = fork();
  if (child == 0) {
    if (seteuid(65534) != 0) _exit(1);
    const DeviceStatus locked = gpu->lock_clock(Megahertz(350)), unlocked = gpu->unlock_clock();
    if (locked || locked.error().fault != DeviceFault::no_permission) _exit(2);
    if (unlocked || unlocked.error().fault != DeviceFault::no_permission) _exit(3);
    _exit(gpu->energy() && gpu->clock() ? 0 : 4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(truth().locked());
}

TEST_F(Nvml, MigAndPowerSmoothingAreSeen) {
  auto spec = sample_spec();
  spec.mig = spec.power_smoothing = true;
  make("a", spec);
  const auto conditions = open()->conditions();
  EXPECT_TRUE(conditions->mig);
  EXPECT_TRUE(conditions->power_smoothing);
}

// Faults. Every function that a method of Gpu calls, each with every error code: the method fails as specified, or
// works without the function.

struct Method {
  const char* name;
  std::function<std::optional<DeviceFault>(Gpu&)> call;
  std::vector<const char*> functions;  ///< functions without which it fails
  bool sets_clock = false;
};

template <class T>
std::optional<DeviceFault> fault_in(const DeviceResult<T>& result) {
  if (result) return std::nullopt;
  return result.error().fault;
}

std::vector<Method> methods() {
  return {
      {"clock", [](Gpu& gpu) { return fault_in(gpu.clock()); }, {"nvmlDeviceGetClockInfo"}},
      {"energy", [](Gpu& gpu) { return fault_in(gpu.energy()); }, {"nvmlDeviceGetTotalEnergyConsumption"}},
      {"clock_events",
       [](Gpu& gpu) { return fault_in(gpu.clock_events()); },
       {"nvmlDeviceGetCurrentClocksEventReasons"}},
      {"unlock", [](Gpu& gpu) { return fault_in(gpu.unlock_clock()); }, {"nvmlDeviceResetGpuLockedClocks"}},
      {"lock",
       [](Gpu& gpu) { return fault_in(gpu.lock_clock(Megahertz(700))); },
       {"nvmlDeviceSetGpuLockedClocks"},
       true},
      {"clocks",
       [](Gpu& gpu) { return fault_in(gpu.supported_clocks()); },
       {"nvmlDeviceGetSupportedMemoryClocks", "nvmlDeviceGetSupportedGraphicsClocks"}},
  };
}

TEST_F(Nvml, EveryFaultOfEveryFunctionIsReportedWithoutSideEffects) {
  make("a");
  for (const Method& method : methods()) {
    for (const char* function : method.functions) {
      for (const int code :
           {1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29, 999, 12345}) {
        const auto gpu = open();
        truth().inject(function, code, -1);
        auto fault = std::optional(fault_of_nvml(code, method.sets_clock));
        // Where the driver lists no clocks it gives their range.
        if (method.name == std::string_view("clocks") && fault == DeviceFault::not_supported) fault.reset();
        EXPECT_EQ(method.call(*gpu), fault) << function << " " << code;
        truth().inject(function, 0, 0);
        EXPECT_EQ(method.call(*gpu), std::nullopt) << function << " after " << code;
      }
    }
  }
}

TEST_F(Nvml, ThePolicyIsTheReferences) {
  EXPECT_EQ(fault_of_nvml(4), DeviceFault::no_permission);
  for (const int code : {1, 9, 12, 18, 28}) EXPECT_EQ(fault_of_nvml(code), DeviceFault::no_driver) << code;
  for (const int code : {3, 13, 26}) EXPECT_EQ(fault_of_nvml(code), DeviceFault::not_supported) << code;
  for (const int code : {2, 24}) EXPECT_EQ(fault_of_nvml(code, true), DeviceFault::bad_clock) << code;
  for (const int code : {15, 16}) EXPECT_EQ(fault_of_nvml(code), DeviceFault::lost) << code;
  for (const int code : {10, 27, 999, 4711}) EXPECT_EQ(fault_of_nvml(code), DeviceFault::busy) << code;
}

TEST_F(Nvml, AMessageNamesTheCallTheGpuAndTheReason) {
  auto spec = sample_spec();
  spec.uuid = "GPU-77";
  make("a", spec);
  const auto gpu = open();
  truth().inject("nvmlDeviceGetClockInfo", 15, 1);
  EXPECT_EQ(gpu->clock().error().message, "nvmlDeviceGetClockInfo of GPU-77: the GPU is lost (NVML 15)");
}

TEST_F(Nvml, AFunctionThatIsMissingHasAnOlderOneOrIsDoneWithout) {
  make("a");
  const auto gpu = open();
  truth().inject("nvmlDeviceGetCurrentClocksEventReasons", 13, -1);  // drivers before 12.2 know only the other name
  EXPECT_TRUE(gpu->clock_events()->idle);
  truth().inject("nvmlDeviceGetTotalEnergyConsumption", 13, -1);  // falls back to the field
  EXPECT_TRUE(gpu->energy());
  truth().inject("nvmlDeviceGetEnforcedPowerLimit", 3, -1);
  EXPECT_EQ(*gpu->power_limit(), Watts(500));
  truth().inject("nvmlDeviceGetFieldValues", 13, -1);
  EXPECT_FALSE(gpu->energy());
  const auto older = open();
  EXPECT_EQ(*older->power(), Watts(50));  // nvmlDeviceGetPowerUsage
  for (const char* function : {"nvmlDeviceGetMigMode", "nvmlDeviceGetPersistenceMode",
                               "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetPowerManagementDefaultLimit"}) {
    truth().inject(function, 3, -1);
  }
  const auto conditions = older->conditions();
  ASSERT_TRUE(conditions) << conditions.error().message;
  EXPECT_FALSE(conditions->mig);
  EXPECT_EQ(conditions->default_power_limit, Watts(0));
  truth().inject("nvmlDeviceGetMigMode", 15, -1);
  EXPECT_EQ(older->conditions().error().fault, DeviceFault::lost);
}

TEST_F(Nvml, AClockThatIsNoneOfItsClocksBecomesTheNearestOnce) {
  make("a");
  const auto gpu = open();
  truth().inject("nvmlDeviceSetGpuLockedClocks", 24, 1);
  EXPECT_TRUE(gpu->lock_clock(Megahertz(800)));
  EXPECT_EQ(truth().clock(), Megahertz(700));
  truth().inject("nvmlDeviceSetGpuLockedClocks", 24, 2);
  EXPECT_EQ(gpu->lock_clock(Megahertz(400)).error().fault, DeviceFault::bad_clock);
  EXPECT_EQ(truth().clock(), Megahertz(700));
}

TEST_F(Nvml, AnInitializationThatFailedIsTriedAgain) {
  make("a");
  truth().inject("nvmlInit_v2", 999, 1);
  const auto gpu = open_gpu("nvml:0");
  ASSERT_FALSE(gpu);
  EXPECT_EQ(gpu.error().fault, DeviceFault::busy);
  EXPECT_TRUE(open_gpu("nvml:0"));
}

}  // namespace
}  // namespace perseus::device
