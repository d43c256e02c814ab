// Included in front of every source on x86-64, so that programs built on Debian 12 run on glibc 2.34 and GCC 11's
// libstdc++ (RHEL 9): of the two versions that newer libraries have of these functions, the older one is linked.
// They differ in errno (hypot) and in thread cancellation (wait), of which nothing here makes use.
//
// Input:   only what is referenced gets a symbol. tests/install/oldest_system.py finds what a package needs.
#pragma once

#if defined(__x86_64__) && defined(__gnu_linux__)
__asm__(".symver hypot,hypot@GLIBC_2.2.5");
__asm__(
    ".symver _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE,"
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
#endif
