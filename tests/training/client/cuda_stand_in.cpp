// NOT CUDA: a stand-in for libcuda.so.1 with a few functions for events, for tests of client/cuda_events.
//
// It has one stream. Time passes only when a test enqueues work and completes it.
// Threads: the threads of a client may read while the test writes.
#include <atomic>
#include <deque>

extern "C" {

namespace {
double enqueued_s = 0;           // end of the work enqueued so far, on the stand-in's own clock
std::atomic<double> done_s = 0;  // how far the device has got
int capturing = 0;
std::atomic<int> failure = 0;
int a_context = 0;
bool has_context = true;

struct Event {
  double at_s = 0;
};
}  // namespace

// Functions for the test.
void stand_in_enqueue(double seconds) { enqueued_s += seconds; }
void stand_in_run_all() { done_s = enqueued_s; }
void stand_in_capture(int on) { capturing = on; }
void stand_in_fail(int code) { failure = code; }
void stand_in_context(int on) { has_context = on != 0; }

// Functions of libcuda.
int cuEventCreate(void** event, unsigned) {
  static std::deque<Event> events;  // never freed: the client does not return the events of a failed device
  *event = &events.emplace_back();
  return 0;
}
int cuEventRecord(void* event, void*) {
  if (failure != 0) return failure;
  static_cast<Event*>(event)->at_s = enqueued_s;
  return 0;
}
int cuEventQuery(void* event) {
  if (failure != 0) return failure;
  return static_cast<Event*>(event)->at_s <= done_s ? 0 : 600;
}
int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  *milliseconds = static_cast<float>((static_cast<Event*>(to)->at_s - static_cast<Event*>(from)->at_s) * 1e3);
  return failure;
}
int cuEventDestroy_v2(void*) { return 0; }
int cuCtxGetCurrent(void** context) {
  *context = has_context ? &a_context : nullptr;
  return 0;
}
int cuCtxSetCurrent(void*) { return 0; }
int cuStreamIsCapturing(void*, int* is) {
  *is = capturing;
  return 0;
}
}
