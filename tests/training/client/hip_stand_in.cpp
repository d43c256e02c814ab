// A library that is called like AMD's HIP runtime.
extern "C" __attribute__((visibility("default"))) int hipInit(unsigned flags) { return static_cast<int>(flags); }
