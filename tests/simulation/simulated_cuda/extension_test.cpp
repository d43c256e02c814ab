// The C extension of the simulated CUDA driver: GPUs from a description, and messages that the device sends itself.
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "cuda.h"

namespace perseus::testing {
namespace {

int make_gpu(const std::string& path, const char* description) {
  return cu("perseus_simulated_make_gpu", path.c_str(), description);
}

class ExtensionTest : public CudaTest {
 protected:
  /// Of this process alone: the tests of several builds may run at once.
  static std::string file(const std::string& name) {
    return (std::filesystem::temp_directory_path() / (name + "-" + std::to_string(::getpid()))).string();
  }
};

TEST_F(ExtensionTest, AGpuIsMadeOfADescription) {
  const std::string path = file("perseus-made-gpu");
  EXPECT_EQ(make_gpu(path,
                     "blocking_power_w 70\n"
                     "forward.0 900 0.2 150\n"
                     "forward.0 1500 0.1 300\n"
                     "backward.0 1500 0.2 310\n"
                     "backward.0 900 0.4 160\n"),
            kSuccess);
  auto gpu = simulated_gpu::SimulatedGpu::attach(path);
  ASSERT_TRUE(gpu);
  EXPECT_EQ((*gpu)->computations(), (std::vector<std::string>{"backward.0", "forward.0"}));
  EXPECT_EQ((*gpu)->clock(), Megahertz(1500));
  std::filesystem::remove(path);
}

TEST_F(ExtensionTest, AFileIsReadWithoutAContext) {
  const std::string path = file("perseus-read-gpu");
  simulated_cuda::GpuRecord record{};
  EXPECT_EQ(cu("perseus_simulated_read_gpu", path.c_str(), 0.0, &record), kInvalidValue);
  ASSERT_EQ(make_gpu(path, "blocking_power_w 70\nforward.0 900 0.1 200\nforward.0 1500 0.1 300\n"), kSuccess);
  auto gpu = simulated_gpu::SimulatedGpu::attach(path);
  ASSERT_TRUE(gpu);
  const double from_s = now_s();
  (*gpu)->run(0);
  (*gpu)->set_power_limit(Watts(250));
  const double until_s = now_s();
  ASSERT_EQ(cu("perseus_simulated_read_gpu", path.c_str(), from_s, &record), kSuccess);
  const double before_j = record.energy_j;
  ASSERT_EQ(cu("perseus_simulated_read_gpu", path.c_str(), until_s, &record), kSuccess);
  EXPECT_DOUBLE_EQ(record.energy_j - before_j, ((*gpu)->energy(until_s) - (*gpu)->energy(from_s)).value());
  EXPECT_GE(record.energy_j - before_j, 30);  // 0.1 s of 300 W
  EXPECT_LE(record.remembered_from_s, from_s);
  EXPECT_DOUBLE_EQ(record.power_limit_w, 250);
  EXPECT_EQ(record.clock_mhz, 1500);
  EXPECT_EQ(record.locked, 0);
  std::filesystem::remove(path);
}

TEST_F(ExtensionTest, AWrongDescriptionMakesNoGpu) {
  const std::string path = file("perseus-no-gpu");
  EXPECT_EQ(make_gpu(path, ""), kInvalidValue);
  EXPECT_EQ(make_gpu(path, "forward.0 1500 0.1"), kInvalidValue);
  EXPECT_EQ(make_gpu(path, "forward.0 1500 -0.1 300"), kInvalidValue);
  EXPECT_EQ(make_gpu(path, "forward.0 1500 0.1 300\nbackward.0 900 0.4 160"), kInvalidValue);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ExtensionTest, TheDeviceSendsAMessageWhenTheStreamGetsThere) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets), 0);
  const std::uint64_t gate = close_gate(stream_);
  EXPECT_EQ(cu("perseus_simulated_stream_send", stream_, sockets[0], std::uint64_t{42}), kSuccess);
  char packet[32];
  EXPECT_EQ(::recv(sockets[1], packet, sizeof packet, MSG_DONTWAIT), -1);
  const double before_s = now_s();
  open_gate(gate);
  ASSERT_EQ(::recv(sockets[1], packet, sizeof packet, 0), 16);
  std::uint64_t message = 0;
  double time_s = 0;
  std::memcpy(&message, packet, 8);
  std::memcpy(&time_s, packet + 8, 8);
  EXPECT_EQ(message, 42U);
  EXPECT_GE(time_s, before_s);
  ::close(sockets[0]);
  ::close(sockets[1]);
}

}  // namespace
}  // namespace perseus::testing
