// Setting clocks through zeusd: both dialects, its failures, its connections, and its possible answers.
#include "training/device/zeusd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "environment.h"
#include "sample_gpu.h"
#include "training/device/gpu.h"
#include "training/device/open_gpu.h"
#include "training/device/visible_devices.h"
#include "zeusd_stand_in.h"

namespace perseus::device {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ZeusdControl : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b"}) {
      auto spec = sample_spec();
      spec.pci_bus_id = std::string("00000000:0") + name + ":00.0";
      spec.name = name;
      auto made = simulated_gpu::SimulatedGpu::create(folder_.file(name), spec);
      ASSERT_TRUE(made);
      gpus_.push_back(std::move(*made));
    }
  }
  /// It numbers the GPUs in the reverse of NVML's order here.
  void start(ZeusdStandIn::Habits habits = {}) {
    std::vector<std::string> files{folder_.file("b"), folder_.file("a")};
    if (habits.older) std::swap(files[0], files[1]);
    zeusd_ = std::make_unique<ZeusdStandIn>(folder_.file("sock"), files, std::move(habits));
  }
  std::vector<std::string> commands() {
    auto requests = zeusd_->requests();
    std::erase(requests, "GET /discover");
    return requests;
  }

  ScratchFolder folder_;
  Environment library_{"PERSEUS_NVML", PERSEUS_NVML_SIMULATED};
  Environment files_{"PERSEUS_SIMULATED_GPUS", folder_.file("a") + ":" + folder_.file("b")};
  Environment socket_{"ZEUSD_SOCK_PATH", folder_.file("sock")};
  Environment token_{"ZEUSD_TOKEN", nullptr};
  std::vector<std::unique_ptr<simulated_gpu::SimulatedGpu>> gpus_;
  std::unique_ptr<ZeusdStandIn> zeusd_;
};

TEST_F(ZeusdControl, SetsTheGpuAtThatBusId) {
  start();
  const auto gpu = open_gpu("zeusd:1");
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ((*gpu)->identity().name, "b");
  EXPECT_THAT((*gpu)->identity().driver, HasSubstr("zeusd"));
  EXPECT_TRUE((*gpu)->lock_clock(Megahertz(350)));
  EXPECT_EQ(gpus_[1]->clock(), Megahertz(350));
  EXPECT_FALSE(gpus_[0]->locked());
  EXPECT_EQ(*(*gpu)->clock(), Megahertz(350));
  EXPECT_TRUE((*gpu)->unlock_clock());
  EXPECT_FALSE(gpus_[1]->locked());
  EXPECT_THAT(commands(),
              ElementsAre("POST /gpu/set_gpu_locked_clocks?gpu_ids=0&min_clock_mhz=350&max_clock_mhz=350&block=true",
                          "POST /gpu/reset_gpu_locked_clocks?gpu_ids=0&block=true"));
}

TEST_F(ZeusdControl, UsesTheOlderProtocolWithoutDiscovery) {
  ZeusdStandIn::Habits habits;
  habits.older = true;
  start(habits);
  const auto gpu = open_gpu("zeusd:1");
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_TRUE((*gpu)->lock_clock(Megahertz(700)));
  EXPECT_EQ(gpus_[1]->clock(), Megahertz(700));
  EXPECT_TRUE((*gpu)->unlock_clock());
  EXPECT_THAT(commands(),
              ElementsAre(R"(POST /gpu/1/set_gpu_locked_clocks {"min_clock_mhz":700,"max_clock_mhz":700,"block":true})",
                          R"(POST /gpu/1/reset_gpu_locked_clocks {"block":true})"));
}

TEST_F(ZeusdControl, WaitsForTheGpuAtFirstAndNowAndThen) {
  start();
  const auto gpu = open_gpu("zeusd:0");
  ASSERT_TRUE(gpu);
  for (int i = 0; i < 130; ++i) ASSERT_TRUE((*gpu)->lock_clock(Megahertz(i % 2 == 0 ? 700 : 350)));
  const auto all = commands();
  std::vector<std::size_t> blocking;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].ends_with("block=true")) blocking.push_back(i);
  }
  EXPECT_THAT(blocking, ElementsAre(0, 64, 128));
  EXPECT_EQ(zeusd_->connections(), 1);
}

TEST_F(ZeusdControl, WaitsForTheGpuAfterAFailureAndAfterGivingTheClockBack) {
  start();
  const auto gpu = open_gpu("zeusd:0");
  ASSERT_TRUE(gpu);
  const auto waited = [&] { return commands().back().ends_with("block=true"); };
  const auto lock = [&] { return (*gpu)->lock_clock(Megahertz(700)).ok(); };
  EXPECT_TRUE(lock() && lock());
  EXPECT_FALSE(waited());
  ZeusdStandIn::Habits failing;
  failing.failure = 500;
  zeusd_->set_habits(failing);
  EXPECT_FALSE(lock());
  zeusd_->set_habits({});
  EXPECT_TRUE(lock());
  EXPECT_TRUE(waited());
  EXPECT_TRUE(lock());
  EXPECT_FALSE(waited());
  EXPECT_TRUE((*gpu)->unlock_clock());
  EXPECT_TRUE(lock());
  EXPECT_TRUE(waited());
}

TEST_F(ZeusdControl, AConnectionThatWasClosedIsOpenedAgainOnce) {
  ZeusdStandIn::Habits habits;
  habits.requests_a_connection = 2;
  start(habits);
  const auto gpu = open_gpu("zeusd:0");
  ASSERT_TRUE(gpu);
  for (int i = 0; i < 10; ++i) {
    const DeviceStatus done = (*gpu)->lock_clock(Megahertz(i % 2 == 0 ? 700 : 350));
    ASSERT_TRUE(done) << done.error().message;
  }
  EXPECT_GE(zeusd_->connections(), 5);
  EXPECT_EQ(commands().size(), 10U);
  zeusd_.reset();
  const DeviceStatus gone = (*gpu)->lock_clock(Megahertz(700));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().fault, DeviceFault::no_driver) << gone.error().message;
  start();
  EXPECT_TRUE((*gpu)->lock_clock(Megahertz(700)));
}

TEST_F(ZeusdControl, ATokenIsSentAndMissedWhereItIsMissing) {
  ZeusdStandIn::Habits habits;
  habits.token = "abc.def.ghi";
  start(habits);
  EXPECT_EQ(open_gpu("zeusd:0").error().fault, DeviceFault::no_permission);
  EXPECT_THAT(open_gpu("zeusd:0").error().message, HasSubstr("ZEUSD_TOKEN"));
  {
    Environment wrong("ZEUSD_TOKEN", "another");
    const auto gpu = open_gpu("zeusd:0");
    ASSERT_TRUE(gpu);
    EXPECT_EQ((*gpu)->lock_clock(Megahertz(700)).error().fault, DeviceFault::no_permission);
  }
  Environment right("ZEUSD_TOKEN", "abc.def.ghi");
  const auto gpu = open_gpu("zeusd:0");
  ASSERT_TRUE(gpu);
  EXPECT_TRUE((*gpu)->lock_clock(Megahertz(700)));
}

TEST_F(ZeusdControl, ATokenThatExpiresIsReadAgainFromItsFile) {
  const auto write = [this](const char* token) { std::ofstream(folder_.file("token")) << token << "\n"; };
  ZeusdStandIn::Habits habits;
  habits.token = "first";
  start(habits);
  write("first");
  Environment file("ZEUSD_TOKEN_FILE", folder_.file("token"));
  const auto gpu = open_gpu("zeusd:0");
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_TRUE((*gpu)->lock_clock(Megahertz(700)));
  habits.token = "second";
  zeusd_->set_habits(habits);
  write("second");
  EXPECT_TRUE((*gpu)->lock_clock(Megahertz(350)));
  EXPECT_EQ(gpus_[0]->clock(), Megahertz(350));
  habits.token = "third";
  zeusd_->set_habits(habits);
  const DeviceStatus kept = (*gpu)->unlock_clock();
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().fault, DeviceFault::no_permission);
  EXPECT_THAT(kept.error().message, AllOf(HasSubstr("HTTP 401"), HasSubstr("ZEUSD_TOKEN_FILE")));
  EXPECT_TRUE(gpus_[0]->locked());
  write("third");
  EXPECT_TRUE((*gpu)->unlock_clock());
  EXPECT_FALSE(gpus_[0]->locked());
}

TEST_F(ZeusdControl, WhatNvmlDoesNotPermitGoesThroughZeusd) {
  for (const char* setter : {"nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"}) {
    gpus_[1]->inject(setter, 4, -1);
  }
  const auto gpu = open_gpu("nvml:1");
  ASSERT_TRUE(gpu) << gpu.error().message;
  const DeviceStatus alone = (*gpu)->lock_clock(Megahertz(350));
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().fault, DeviceFault::no_permission);
  EXPECT_THAT(alone.error().message, Not(HasSubstr(folder_.file("sock")))) << "there is none";
  EXPECT_FALSE((*gpu)->identity().by_daemon);
  ZeusdStandIn::Habits habits;
  habits.controls = false;
  start(habits);
  EXPECT_THAT((*gpu)->lock_clock(Megahertz(350)).error().message, HasSubstr("gpu-control"));
  zeusd_->set_habits({});
  EXPECT_TRUE((*gpu)->lock_clock(Megahertz(350)));
  EXPECT_EQ(gpus_[1]->clock(), Megahertz(350));
  EXPECT_FALSE(gpus_[0]->locked());
  EXPECT_TRUE((*gpu)->identity().by_daemon);
  // Another process gives it back: a restorer.
  EXPECT_TRUE((*open_gpu("nvml:1"))->unlock_clock());
  EXPECT_FALSE(gpus_[1]->locked());
}

TEST_F(ZeusdControl, ADaemonThatDoesNotSetClocksIsRefused) {
  ZeusdStandIn::Habits habits;
  habits.controls = false;
  start(habits);
  const auto gpu = open_gpu("zeusd:0");
  ASSERT_FALSE(gpu);
  EXPECT_EQ(gpu.error().fault, DeviceFault::no_permission);
  EXPECT_THAT(gpu.error().message, HasSubstr("gpu-control"));
}

TEST_F(ZeusdControl, ReportsAMissingDaemon) {
  const auto gpu = open_gpu("zeusd:0");
  ASSERT_FALSE(gpu);
  EXPECT_EQ(gpu.error().fault, DeviceFault::no_driver);
  EXPECT_THAT(gpu.error().message, HasSubstr(folder_.file("sock")));
}

TEST_F(ZeusdControl, EveryStatusHasAMessage) {
  start();
  const auto gpu = open_gpu("zeusd:0");
  ASSERT_TRUE(gpu);
  const std::pair<int, DeviceFault> meanings[] = {{400, DeviceFault::bad_clock},
                                                  {401, DeviceFault::no_permission},
                                                  {403, DeviceFault::no_permission},
                                                  {404, DeviceFault::not_supported},
                                                  {500, DeviceFault::busy}};
  for (const auto& [status, fault] : meanings) {
    ZeusdStandIn::Habits habits;
    habits.failure = status;
    zeusd_->set_habits(habits);
    const DeviceStatus locked = (*gpu)->lock_clock(Megahertz(700));
    EXPECT_EQ(locked.error().fault, fault) << status;
    EXPECT_THAT(locked.error().message, HasSubstr("the driver says no"));
    const DeviceFault without_clock = status == 400 ? DeviceFault::not_supported : fault;
    EXPECT_EQ((*gpu)->unlock_clock().error().fault, without_clock) << status;
  }
  zeusd_->set_habits({});
  EXPECT_TRUE((*gpu)->lock_clock(Megahertz(700)));
  EXPECT_EQ((*gpu)->lock_clock(Megahertz(0)).error().fault, DeviceFault::bad_clock);
}

TEST_F(ZeusdControl, NonsenseIsAnErrorAndNotACrash) {
  start();
  const auto gpu = open_gpu("zeusd:0");
  ASSERT_TRUE(gpu);
  for (const char* nonsense :
       {"hello\r\n\r\n", "HTTP/1.1 banana\r\n\r\n", "HTTP/1.1 200 x\r\ncontent-length: -4\r\n\r\n",
        "HTTP/1.1 200 x\r\ncontent-length: 99999999999\r\n\r\n"}) {
    ZeusdStandIn::Habits habits;
    habits.nonsense = nonsense;
    zeusd_->set_habits(habits);
    EXPECT_EQ((*gpu)->lock_clock(Megahertz(700)).error().fault, DeviceFault::busy) << nonsense;
  }
  ZeusdStandIn::Habits habits;
  habits.nonsense = "HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
  zeusd_->set_habits(habits);
  EXPECT_TRUE((*gpu)->lock_clock(Megahertz(700)));
}

TEST_F(ZeusdControl, ASilentDaemonIsGivenUp) {
  ZeusdStandIn::Habits habits;
  habits.silent = true;
  start(habits);
  UnixHttp http(folder_.file("sock"), "", std::chrono::milliseconds(50));
  const auto answer = http.call("GET", "/discover");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().fault, DeviceFault::busy);
  EXPECT_THAT(answer.error().message, HasSubstr("within 0.05 s"));
}

/// Two AMD GPUs, the second one HIP's first; without NVML.
class ZeusdOfAmd : public ZeusdControl {
 protected:
  void SetUp() override {
    ZeusdControl::SetUp();
    for (const auto& [bus, node] : {std::pair{"0a", 2}, {"0b", 1}}) {
      const std::string device = "bus/pci/devices/0000:" + std::string(bus) + ":00.0/";
      write(device + "vendor", "0x1002\n");
      write(device + "pp_dpm_sclk", "S: 19Mhz *\n0: 500Mhz\n1: 1400Mhz\n");
      write(device + "hwmon/hwmon3/freq1_input", "1370000000\n");
      write(device + "drm/renderD128/dev", "226:128\n");
      write("class/kfd/kfd/topology/nodes/" + std::to_string(node) + "/properties",
            "cpu_cores_count 0\nsimd_count 1216\nlocation_id " + std::to_string(std::stoi(bus, nullptr, 16) * 256) +
                "\ndomain 0\nmax_engine_clk_fcompute 2100\n");
    }
    write("class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 64\nsimd_count 0\nlocation_id 0\n");
    habits_.amd = true;
    habits_.name = "AMD Instinct MI300X";
    habits_.pci = {"0000:0a:00.0", "0000:0b:00.0"};
  }
  void start_amd() {
    zeusd_ = std::make_unique<ZeusdStandIn>(folder_.file("sock"),
                                            std::vector<std::string>{folder_.file("a"), folder_.file("b")}, habits_);
  }
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.file("sys/" + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  Environment no_nvml_{"PERSEUS_NVML", "/no/such/libnvidia-ml.so.1"};
  Environment sys_{"PERSEUS_SYS", folder_.file("sys")};
  ZeusdStandIn::Habits habits_;
};

TEST_F(ZeusdOfAmd, ReadsEnergyAndLimitsByZeusdAndClocksFromTheKernel) {
  start_amd();
  EXPECT_THAT(find_gpus(), ::testing::IsSupersetOf({"zeusd:0000:0a:00.0", "zeusd:0000:0b:00.0"}));
  const auto gpu = open_gpu("zeusd:0000:0b:00.0");
  ASSERT_TRUE(gpu) << gpu.error().message;
  const GpuIdentity& identity = (*gpu)->identity();
  EXPECT_EQ(identity.name, "AMD Instinct MI300X");
  EXPECT_EQ(identity.pci_bus_id, "0000:0b:00.0");
  EXPECT_EQ(identity.node, "/dev/dri/renderD128");
  EXPECT_TRUE(identity.amd);
  EXPECT_EQ(stable_selector(identity, "zeusd:1"), "zeusd:0000:0b:00.0");
  const auto clocks = *(*gpu)->supported_clocks();
  EXPECT_EQ(clocks.front(), Megahertz(2100)) << "KFD's: pp_dpm_sclk may show a limit";
  EXPECT_EQ(clocks[1], Megahertz(2075));
  EXPECT_EQ(clocks.back(), Megahertz(525)) << "the driver refuses equal limits";
  EXPECT_EQ(*(*gpu)->clock(), Megahertz(1370));
  EXPECT_GE((*gpu)->energy()->value(), 0);
  EXPECT_EQ(*(*gpu)->power(), Watts(50));
  EXPECT_EQ(*(*gpu)->power_limit(), Watts(500));
  EXPECT_FALSE((*gpu)->conditions()->mig);
  EXPECT_EQ(open_gpu("zeusd:0000:0c:00.0").error().fault, DeviceFault::lost);
}

TEST_F(ZeusdOfAmd, LimitsTheHighestClockAndGivesAllClocksBack) {
  start_amd();
  const auto gpu = open_gpu("zeusd:1");
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_TRUE((*gpu)->lock_clock(Megahertz(700)));
  EXPECT_EQ(gpus_[1]->clock(), Megahertz(700));
  EXPECT_TRUE((*gpu)->unlock_clock());
  EXPECT_FALSE(gpus_[1]->locked());
  EXPECT_EQ((*gpu)->lock_clock(Megahertz(500)).error().fault, DeviceFault::bad_clock);
  EXPECT_THAT(commands(),
              ElementsAre("POST /gpu/set_gpu_locked_clocks?gpu_ids=1&min_clock_mhz=500&max_clock_mhz=700&block=true",
                          "POST /gpu/reset_locked_clocks?gpu_ids=1&block=true"));
}

TEST_F(ZeusdOfAmd, AHalfMadeLimitIsUndone) {
  habits_.refuses_maximum = true;
  start_amd();
  const auto gpu = open_gpu("zeusd:0");
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ((*gpu)->lock_clock(Megahertz(700)).error().fault, DeviceFault::bad_clock);
  EXPECT_FALSE(gpus_[0]->locked());
  // If that fails too, the clock may be locked: its lease must stay.
  habits_.amd = false;
  zeusd_->set_habits(habits_);
  const DeviceStatus stays = (*gpu)->lock_clock(Megahertz(700));
  EXPECT_EQ(stays.error().fault, DeviceFault::busy);
  EXPECT_THAT(stays.error().message, HasSubstr("may have stayed"));
}

TEST_F(ZeusdOfAmd, ValuesThatMeanUnknownAreUnknown) {
  habits_.unknown_limits = true;
  start_amd();
  const auto gpu = open_gpu("zeusd:0");
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ((*gpu)->power_limit().error().fault, DeviceFault::not_supported);
  EXPECT_EQ((*gpu)->conditions()->default_power_limit, Watts(0));
}

TEST_F(ZeusdOfAmd, TheSecondDieOfAnMi250HasNoEnergyOfItsOwn) {
  habits_.name = "AMD Instinct MI250X";
  start_amd();
  EXPECT_TRUE((*open_gpu("zeusd:0000:0a:00.0"))->energy());
  const auto second = open_gpu("zeusd:0000:0b:00.0");
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ((*second)->energy().error().fault, DeviceFault::not_supported);
  EXPECT_THAT((*second)->energy().error().message, HasSubstr("is counted with GPU 0"));
  EXPECT_TRUE((*second)->lock_clock(Megahertz(700)));
}

TEST_F(ZeusdOfAmd, APartitionIsNeitherMeasuredNorSet) {
  habits_.pci = {"0000:0a:00.0", "0000:0a:00.1"};
  start_amd();
  for (const char* selector : {"zeusd:0000:0a:00.0", "zeusd:0000:0a:00.1"}) {
    const auto gpu = open_gpu(selector);
    ASSERT_TRUE(gpu) << gpu.error().message;
    EXPECT_TRUE((*gpu)->conditions()->mig);
    EXPECT_EQ((*gpu)->energy().error().fault, DeviceFault::not_supported);
    EXPECT_EQ((*gpu)->lock_clock(Megahertz(700)).error().fault, DeviceFault::not_supported);
    EXPECT_EQ(control_path(selector).kind, "none");
  }
}

TEST_F(ZeusdOfAmd, ADaemonThatSetsNoClocksIsStillRead) {
  habits_.controls = false;
  start_amd();
  const auto gpu = open_gpu("zeusd:0");
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_TRUE((*gpu)->energy());
  EXPECT_EQ((*gpu)->lock_clock(Megahertz(700)).error().fault, DeviceFault::no_permission);
  EXPECT_EQ(control_path("zeusd:0").kind, "none");
}

TEST_F(ZeusdOfAmd, ARankHasTheGpuOfItsHipNumber) {
  start_amd();
  const auto rank = [](const char* local_rank) {
    const auto variable = [local_rank](const char* name) {
      return std::string_view(name) == "LOCAL_RANK" ? local_rank : nullptr;
    };
    return choose_device(list_gpus(), {}, variable, {std::nullopt, 0}).selector;
  };
  EXPECT_EQ(rank("0"), "zeusd:0000:0b:00.0") << "KFD's node 1, zeusd's GPU 1";
  EXPECT_EQ(rank("1"), "zeusd:0000:0a:00.0");
}

TEST(ZeusdOfferTest, OnlyAValidOfferIsAccepted) {
  const auto offer = parse_zeusd_offer(
      R"({"gpus":[{"id":3,"name":"x","pci_address":"0000:01:00.0"}],"enabled_api_groups":["gpu-control"],"auth_required":true})");
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->gpus.front().id, 3);
  EXPECT_EQ(offer->gpus.front().pci, parse_pci_bus_id("00000000:01:00.0"));
  EXPECT_TRUE(offer->controls);
  EXPECT_TRUE(offer->needs_token);
  for (const char* text :
       {"", "{}", "[]", "null", R"({"gpus":{}})", R"({"gpus":[1]})", R"({"gpus":[{"id":-1,"pci_address":"0:1:0"}]})",
        R"({"gpus":[{"id":"0","pci_address":"0:1:0"}]})", R"({"gpus":[{"id":0,"pci_address":"here"}]})",
        R"({"gpus":[{"id":0}]})", R"({"gpus":[]} trailing)"}) {
    EXPECT_FALSE(parse_zeusd_offer(text)) << text;
  }
}

TEST_F(ZeusdControl, TheWayOfControlIsChosenByPrivilege) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give it up";
  const ControlPath simulated = control_path("simulated:" + folder_.file("a"));
  EXPECT_EQ(simulated.kind, "simulated");
  EXPECT_EQ(control_path("nvml:7").kind, "none");
  const ControlPath direct = control_path("nvml:0");
  EXPECT_TRUE(direct.kind == "NVML" || direct.why.find("CAP_SYS_ADMIN") != std::string::npos) << direct.why;
  start();
  namespace fs = std::filesystem;
  for (const std::string& path : {folder_.path(), folder_.file("a"), folder_.file("b"), folder_.file("sock")}) {
    fs::permissions(path, fs::perms::all);
  }
  ASSERT_EQ(seteuid(65534), 0);  // this also drops the effective capabilities
  const ControlPath with = control_path("nvml:0");
  zeusd_.reset();
  const ControlPath without = control_path("nvml:0");
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(with.kind, "zeusd") << with.why;
  EXPECT_EQ(with.selector, "zeusd:0");
  EXPECT_EQ(without.kind, "none");
  EXPECT_EQ(without.selector, "");
  EXPECT_THAT(without.why, HasSubstr("neither root nor has CAP_SYS_ADMIN; no zeusd"));
  EXPECT_FALSE(gpus_[0]->locked());
}

}  // namespace
}  // namespace perseus::device
