// Prints the compiler's layout of perseus.h: "struct perseus_options 208", "field perseus_options server 8 8", ...,
// "constant PERSEUS_FORWARD 0". tests/python/test_library.py makes the list of fields from the header.
#include <perseus/perseus.h>

#include <cstddef>
#include <cstdio>

#define FIELD(type, name) std::printf("field %s %s %zu %zu\n", #type, #name, offsetof(type, name), sizeof(type::name));
#define STRUCT(type) std::printf("struct %s %zu\n", #type, sizeof(type));
#define CONSTANT(name) std::printf("constant %s %lld\n", #name, static_cast<long long>(name));

int main() {
#include "perseus_layout.inc"
}
