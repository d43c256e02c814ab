// The meter of several simulated GPUs: readings at equal intervals, however late they are taken.
#include "simulation/simulated_gpu/site_meter.h"

#include <gtest/gtest.h>

#include "tests/training/device/sample_gpu.h"

namespace perseus::device {
namespace {

TEST(SiteMeter, ReadsAllGpusAtEqualIntervalsThoughItComesLate) {
  ScratchFolder folder;
  HandTurnedTime time;  // starts at 100 s
  auto first = simulated_gpu::SimulatedGpu::create(folder.file("first"), sample_spec(), time.source());
  auto second = simulated_gpu::SimulatedGpu::create(folder.file("second"), sample_spec(), time.source());
  ASSERT_TRUE(first && second);
  (*first)->wait();
  (*second)->wait();
  auto meter = simulated_gpu::SiteMeter::attach({folder.file("first"), folder.file("second")}, Seconds(0.5),
                                                Seconds(0.75), time.source());
  ASSERT_TRUE(meter) << meter.error().message;
  EXPECT_TRUE(meter->read());
  EXPECT_TRUE(meter->samples().empty()) << "the past may still change";
  time.advance(1.25);
  (*first)->begin_in_the_past(0, 101);  // 400 W for a second; all else is waiting, at 80 W
  time.advance(2);
  EXPECT_TRUE(meter->read());
  ASSERT_EQ(meter->samples().size(), 6u);  // the last at 102.5 s
  double expected_j = 0;
  for (std::size_t k = 0; k < meter->samples().size(); ++k) {
    EXPECT_DOUBLE_EQ(meter->samples()[k].at_s, 100 + 0.5 * static_cast<double>(k));
    EXPECT_NEAR(meter->samples()[k].energy.value(), expected_j, 1e-9) << k;
    expected_j += 0.5 * (80 + (k == 2 || k == 3 ? 400 : 80));
  }
  EXPECT_TRUE(meter->read());
  EXPECT_EQ(meter->samples().size(), 6u);
}

TEST(SiteMeter, AReadingThatComesTooLateIsAnError) {
  ScratchFolder folder;
  HandTurnedTime time;
  auto gpu = simulated_gpu::SimulatedGpu::create(folder.file("gpu"), sample_spec(), time.source());
  ASSERT_TRUE(gpu);
  auto meter = simulated_gpu::SiteMeter::attach({folder.file("gpu")}, Seconds(1), Seconds(0), time.source());
  ASSERT_TRUE(meter);
  const auto change_power = [&](int times) {  // a GPU remembers some thousands of changes
    for (int k = 0; k < times; ++k) {
      time.advance(0.01);
      k % 2 == 0 ? (*gpu)->wait() : (*gpu)->idle();
    }
  };
  change_power(2000);
  EXPECT_TRUE(meter->read());
  EXPECT_NEAR(static_cast<double>(meter->samples().size()), 21, 1);
  change_power(8000);
  const Status late = meter->read();
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message.find("too late"), std::string::npos);
}

TEST(SiteMeter, NamesTheGpuThatDoesNotExist) {
  ScratchFolder folder;
  const auto meter =
      simulated_gpu::SiteMeter::attach({folder.file("none")}, Seconds(1), Seconds(1), [] { return 0.0; });
  ASSERT_FALSE(meter);
  EXPECT_NE(meter.error().message.find("none"), std::string::npos);
}

}  // namespace
}  // namespace perseus::device
