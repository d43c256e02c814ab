// NOT CUDA: a stand-in for libcuda.so.1 with the functions that name devices, for tests of device/visible_devices.
#include <cstring>

extern "C" {

int stand_in_current_device = -1;  // -1: the thread has no context
int stand_in_initialized = 1;

int cuDeviceGetCount(int* count) {
  *count = 2;
  return stand_in_initialized != 0 ? 0 : 3;
}
int cuDeviceGet(int* device, int number) {
  *device = number;
  return 0;
}
int cuDeviceGetPCIBusId(char* text, int, int device) {
  std::strcpy(text, device == 0 ? "0000:41:00.0" : "0000:01:00.0");
  return 0;
}
int cuCtxGetDevice(int* device) {
  *device = stand_in_current_device;
  return stand_in_current_device < 0 ? 201 : 0;
}
}
