// Types and numbers of the CUDA driver API, as far as the simulated driver and its callers need them.
//
// Input:   none; declarations only, so that no CUDA toolkit is needed to build.
// Output:  handle types, error codes, flags and attributes with the values that the driver's ABI fixes.
// Source:  CUDA driver API reference, versions 11.7 to 13.0.
#pragma once

#include <cstdint>

namespace perseus::simulated_cuda {

using CudaResult = int;
using DeviceOrdinal = int;
using DevicePointer = std::uint64_t;

struct ContextHandle;
struct StreamHandle;
struct EventHandle;
struct ModuleHandle;
struct FunctionHandle;
struct GraphHandle;
struct GraphExecutableHandle;

using CudaContext = ContextHandle*;
using CudaStream = StreamHandle*;
using CudaEvent = EventHandle*;
using CudaModule = ModuleHandle*;
using CudaFunction = FunctionHandle*;
using CudaGraph = GraphHandle*;
using CudaGraphExecutable = GraphExecutableHandle*;
using HostFunction = void (*)(void*);

enum CudaError : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kContextIsDestroyed = 709,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kLaunchFailed = 719,
  kNotPermitted = 800,
  kNotSupported = 801,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureInvalidated = 901,
  kStreamCaptureUnmatched = 903,
  kStreamCaptureUnjoined = 904,
  kStreamCaptureIsolation = 905,
  kStreamCaptureImplicit = 906,
  kCapturedEvent = 907,
  kStreamCaptureWrongThread = 908,
  kUnknown = 999
};

enum StreamFlag : unsigned { kStreamDefault = 0, kStreamNonBlocking = 1 };
enum EventFlag : unsigned {
  kEventDefault = 0,
  kEventBlockingSync = 1,
  kEventDisableTiming = 2,
  kEventInterprocess = 4
};
enum RecordFlag : unsigned { kRecordDefault = 0, kRecordExternal = 1 };
enum WaitValueFlag : unsigned {
  kWaitGreaterOrEqual = 0,
  kWaitEqual = 1,
  kWaitAnd = 2,
  kWaitNor = 3,
  kWaitFlush = 1U << 30U
};
enum WriteValueFlag : unsigned { kWriteDefault = 0, kWriteNoMemoryBarrier = 1 };
enum CaptureMode : int { kCaptureGlobal = 0, kCaptureThreadLocal = 1, kCaptureRelaxed = 2 };
enum CaptureStatus : int { kCaptureNone = 0, kCaptureActive = 1, kCaptureInvalidated = 2 };

enum Attribute : int {
  kMaxThreadsPerBlock = 1,
  kWarpSize = 10,
  kClockRate = 13,
  kMultiprocessorCount = 16,
  kCanMapHostMemory = 19,
  kConcurrentKernels = 31,
  kPciBusId = 33,
  kPciDeviceId = 34,
  kUnifiedAddressing = 41,
  kPciDomainId = 50,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kStreamPrioritiesSupported = 78,
  kCanUseHostPointerForRegisteredMemory = 91,
  kCanUseStreamMemoryOperationsV1 = 92,
  kCanUse64BitStreamMemoryOperationsV1 = 93,
  kCanUseStreamWaitValueNorV1 = 94,
  kCanFlushRemoteWrites = 98,
  kHostRegisterSupported = 99,
  kCanUse64BitStreamMemoryOperations = 122,
  kCanUseStreamWaitValueNor = 123
};

inline const CudaStream kStreamLegacy = reinterpret_cast<CudaStream>(0x1);
inline const CudaStream kStreamPerThread = reinterpret_cast<CudaStream>(0x2);

}  // namespace perseus::simulated_cuda
