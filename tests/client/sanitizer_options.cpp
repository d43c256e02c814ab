// Options of the address sanitizer for this program: the leak checker of clang 14 crashes at times while it looks into
// the dynamic thread-local storage of the simulated driver's threads, which a library loaded at run time has started.
extern "C" const char* __asan_default_options();                                        // NOLINT
extern "C" const char* __asan_default_options() { return "intercept_tls_get_addr=0"; }  // NOLINT
