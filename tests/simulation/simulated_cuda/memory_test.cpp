// Stream memory operations and registered host memory of the simulated CUDA driver.
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "cuda.h"

namespace perseus::testing {
namespace {

class Memory : public CudaTest {
 protected:
  Memory() { EXPECT_EQ(cu("cuMemHostRegister_v2", address(), sizeof words_, 2U), kSuccess); }
  ~Memory() override {
    cu("cuCtxSynchronize");
    cu("cuMemHostUnregister", address());
  }
  void* address() { return words_.data(); }
  simulated_cuda::DevicePointer pointer(std::size_t index = 0) {
    simulated_cuda::DevicePointer found = 0;
    EXPECT_EQ(cu("cuMemHostGetDevicePointer_v2", &found, static_cast<void*>(&words_[index]), 0U), kSuccess);
    return found;
  }
  [[nodiscard]] std::uint32_t word(std::size_t index = 0) const {
    return __atomic_load_n(&words_[index], __ATOMIC_ACQUIRE);
  }
  int write(simulated_cuda::DevicePointer to, std::uint32_t value, unsigned flags = 0) {
    return cu("cuStreamWriteValue32_v2", stream_, to, value, flags);
  }
  alignas(64) std::array<std::uint32_t, 16> words_{};
};

TEST_F(Memory, AWriteIsVisibleOnceTheStreamGotThereAndNotBefore) {
  const std::uint64_t gate = close_gate(stream_);
  launch(short_, stream_);
  ASSERT_EQ(write(pointer(), 7), kSuccess);
  EXPECT_EQ(word(), 0U);
  open_gate(gate);
  EXPECT_TRUE(comes_true([&] { return word() == 7; }));
}

TEST_F(Memory, WritesAppearInTheStreamsOrder) {
  const simulated_cuda::CudaEvent last = make_event();
  for (std::uint32_t i = 1; i <= 500; ++i) {
    ASSERT_EQ(write(pointer(1), i), kSuccess);
    ASSERT_EQ(write(pointer(0), i), kSuccess);
  }
  record(last, stream_);
  std::uint32_t before = 0;
  ASSERT_TRUE(comes_true([&] {
    const std::uint32_t second = word(0), first = word(1);  // in this order: first is read later
    EXPECT_GE(second, before);
    EXPECT_GE(first, second) << "a later write was seen before an earlier one";
    before = second;
    return query(last) != kNotReady || HasFailure();
  }));
  EXPECT_EQ(word(0), 500U);
}

TEST_F(Memory, AnEventBehindAWriteIsNotDoneBeforeTheWriteIsVisible) {
  ASSERT_EQ(cu("perseus_simulated_configure", "visible_after_us=3000"), kSuccess);
  const simulated_cuda::CudaEvent behind = make_event();
  for (std::uint32_t i = 1; i <= 5; ++i) {
    write(pointer(), i);
    record(behind, stream_);
    ASSERT_TRUE(comes_true([&] { return query(behind) != kNotReady; }));
    ASSERT_EQ(word(), i);
  }
}

TEST_F(Memory, ALateWriteDoesNotDelayTheDevice) {
  ASSERT_EQ(cu("perseus_simulated_configure", "visible_after_us=50000"), kSuccess);
  const std::uint64_t gate = close_gate(stream_);
  simulated_cuda::Stamp first{}, second{};
  launch(short_, stream_);
  stamp(stream_, first);
  write(pointer(), 1);
  launch(short_, stream_);
  stamp(stream_, second);
  open_gate(gate);
  ASSERT_EQ(synchronize(stream_), kSuccess);
  EXPECT_NEAR(second.start_s - first.end_s, second.lost_s - first.lost_s, 1e-9);
}

TEST_F(Memory, AStreamWaitsForAValue) {
  const simulated_cuda::CudaEvent behind = make_event();
  struct Case {
    unsigned flags;
    std::uint32_t value, before, after;
  };
  for (const Case& c :
       {Case{kWaitGreaterOrEqual, 5, 4, 6}, Case{kWaitGreaterOrEqual, 2, 0xfffffff0, 2}, Case{kWaitEqual, 5, 6, 5},
        Case{kWaitAnd, 0x10, 0x0f, 0x30}, Case{kWaitNor, 0xffffff00, 0xff, 0x7f}}) {
    __atomic_store_n(&words_[0], c.before, __ATOMIC_RELEASE);
    ASSERT_EQ(cu("cuStreamWaitValue32_v2", stream_, pointer(), c.value, c.flags), kSuccess);
    record(behind, stream_);
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    EXPECT_EQ(query(behind), kNotReady) << c.flags;
    __atomic_store_n(&words_[0], c.after, __ATOMIC_RELEASE);
    EXPECT_EQ(cu("cuEventSynchronize", behind), kSuccess) << c.flags;
  }
}

TEST_F(Memory, SixtyFourBits) {
  const std::uint64_t value = 0x1'0000'0002;
  ASSERT_EQ(cu("cuStreamWriteValue64_v2", stream_, pointer(2), value, 0U), kSuccess);
  ASSERT_EQ(cu("cuStreamWaitValue64_v2", stream_, pointer(2), value, static_cast<unsigned>(kWaitEqual)), kSuccess);
  ASSERT_EQ(synchronize(stream_), kSuccess);
  EXPECT_EQ(word(2), 2U);
  EXPECT_EQ(word(3), 1U);
  EXPECT_EQ(cu("cuStreamWriteValue64_v2", stream_, pointer(1), value, 0U), kInvalidValue) << "not aligned";
}

TEST_F(Memory, UnmappedOrUnalignedAddressesAreRefused) {
  std::uint32_t elsewhere = 0;
  EXPECT_EQ(write(reinterpret_cast<simulated_cuda::DevicePointer>(&elsewhere), 1), kInvalidValue);
  EXPECT_EQ(write(pointer() + 2, 1), kInvalidValue);
  EXPECT_EQ(write(pointer(), 1, 4), kInvalidValue);
  simulated_cuda::DevicePointer found = 0;
  EXPECT_EQ(cu("cuMemHostGetDevicePointer_v2", &found, static_cast<void*>(&elsewhere), 0U), kInvalidValue);
  EXPECT_EQ(cu("cuMemHostRegister_v2", address(), sizeof words_, 0U), kHostMemoryAlreadyRegistered);
  EXPECT_EQ(cu("cuMemHostUnregister", static_cast<void*>(&elsewhere)), kHostMemoryNotRegistered);
}

// A driver pins the pages: later changes of the program's mappings do not affect the device.
TEST_F(Memory, SharedMemoryThatTheProgramUnmapsStaysForTheDevice) {
  const std::size_t page = 4096;
  const int file = memfd_create("mailbox", 0);
  ASSERT_EQ(ftruncate(file, page), 0);
  void* const mapped = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* const other = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_EQ(cu("cuMemHostRegister_v2", mapped, page, 0U), kSuccess);
  const std::uint64_t gate = close_gate(stream_);
  ASSERT_EQ(write(reinterpret_cast<simulated_cuda::DevicePointer>(mapped) + 8, 3), kSuccess);
  ASSERT_EQ(munmap(mapped, page), 0);
  open_gate(gate);
  ASSERT_EQ(synchronize(stream_), kSuccess);
  EXPECT_EQ(static_cast<std::uint32_t*>(other)[2], 3U);
  EXPECT_EQ(cu("cuMemHostUnregister", mapped), kSuccess);
  munmap(other, page);
  close(file);
}

TEST_F(Memory, TheDevicePointerMayDifferFromTheHosts) {
  ASSERT_EQ(cu("perseus_simulated_configure", "host_pointer_is_device_pointer=0"), kSuccess);
  int same = 1;
  ASSERT_EQ(cu("cuDeviceGetAttribute", &same, static_cast<int>(kCanUseHostPointerForRegisteredMemory), 0), kSuccess);
  EXPECT_EQ(same, 0);
  EXPECT_EQ(write(reinterpret_cast<simulated_cuda::DevicePointer>(&words_[0]), 1), kInvalidValue);
  EXPECT_EQ(write(pointer(), 1), kSuccess);
  EXPECT_EQ(synchronize(stream_), kSuccess);
  EXPECT_EQ(word(), 1U);
}

TEST_F(Memory, AbilitiesCanBeMissing) {
  // Without NVreg_EnableStreamMemOPs=1, the functions of the first version fail on every driver.
  EXPECT_EQ(cu("cuStreamWriteValue32", stream_, pointer(), std::uint32_t{1}, 0U), kNotSupported);
  int value = 1;
  cu("cuDeviceGetAttribute", &value, static_cast<int>(kCanUseStreamMemoryOperationsV1), 0);
  EXPECT_EQ(value, 0);
  cu("cuDeviceGetAttribute", &value, static_cast<int>(kCanUse64BitStreamMemoryOperations), 0);
  EXPECT_EQ(value, 1);
  ASSERT_EQ(cu("perseus_simulated_configure", "stream_memory_operations=0,host_functions=0"), kSuccess);
  EXPECT_EQ(write(pointer(), 1), kNotSupported);
  cu("cuDeviceGetAttribute", &value, static_cast<int>(kCanUse64BitStreamMemoryOperations), 0);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(cu(
                "cuLaunchHostFunc", stream_, +[](void*) {}, static_cast<void*>(nullptr)),
            kNotSupported);
  EXPECT_EQ(word(), 0U);
}

TEST_F(Memory, MemoryOfTheDriverIsMappedAlready) {
  void* allocated = nullptr;
  ASSERT_EQ(cu("cuMemHostAlloc", &allocated, std::size_t{100}, 0U), kSuccess);
  simulated_cuda::DevicePointer found = 0;
  ASSERT_EQ(cu("cuMemHostGetDevicePointer_v2", &found, allocated, 0U), kSuccess);
  EXPECT_EQ(write(found, 9), kSuccess);
  EXPECT_EQ(synchronize(stream_), kSuccess);
  EXPECT_EQ(*static_cast<std::uint32_t*>(allocated), 9U);
  EXPECT_EQ(cu("cuMemHostUnregister", allocated), kHostMemoryNotRegistered);
  EXPECT_EQ(cu("cuMemFreeHost", allocated), kSuccess);
}

TEST_F(Memory, OperationsCanComeInBatches) {
  struct Parameters {
    std::uint32_t operation, padding;
    simulated_cuda::DevicePointer address;
    std::uint64_t value;
    std::uint32_t flags, more;
    std::uint64_t rest[2];
  };
  std::array<Parameters, 3> batch{Parameters{2, 0, pointer(4), 11, 0, 0, {}},
                                  Parameters{1, 0, pointer(4), 11, 1, 0, {}},
                                  Parameters{2, 0, pointer(5), 12, 0, 0, {}}};
  ASSERT_EQ(cu("cuStreamBatchMemOp_v2", stream_, 3U, static_cast<void*>(batch.data()), 0U), kSuccess);
  ASSERT_EQ(synchronize(stream_), kSuccess);
  EXPECT_EQ(word(4), 11U);
  EXPECT_EQ(word(5), 12U);
}

}  // namespace
}  // namespace perseus::testing
