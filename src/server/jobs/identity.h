// Unguessable identifiers, and identifiers derived from content.
//
// Output:  random_hex_id(): 128 bits of the kernel's randomness as 32 hex digits. content_key(): the first 128 bits
//          of the bytes' SHA-256 in the same form: same bytes, same key.
// Errors:  none; without the kernel's randomness the program ends.
// Cost:    a system call; linear.
// Threads: any.
// Source:  getrandom(2).
#pragma once

#include <string>
#include <string_view>

namespace perseus::jobs {

std::string random_hex_id();
std::string content_key(std::string_view bytes);

}  // namespace perseus::jobs
