# How every target is compiled, and the function that makes a module (a folder of src/) a library.

option(PERSEUS_TESTS "Build the tests" ON)
option(PERSEUS_BENCH "Build the benchmarks" OFF)
option(PERSEUS_FUZZ "Build the libFuzzer targets (clang)" OFF)
option(PERSEUS_WARNINGS_AS_ERRORS "For developers: other compilers may warn of more" OFF)
set(PERSEUS_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, for example address,undefined")

add_library(perseus_options INTERFACE)
target_compile_options(perseus_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  $<$<BOOL:${PERSEUS_WARNINGS_AS_ERRORS}>:-Werror>)
# g++ 12 sees overlapping copies in std::string's operator+ where there are none (GCC bug 105651), and reads of an empty
# std::optional's value behind checks that it has one (80635).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(perseus_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
target_include_directories(perseus_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
if(NOT PERSEUS_SANITIZE) # sanitizers intercept the default versions
  target_compile_options(perseus_options INTERFACE -include ${CMAKE_SOURCE_DIR}/cmake/older_symbols.h)
endif()
# PERSEUS_PRELOAD: what a program without sanitizers, Python, must have loaded before a library of ours; may be empty.
set(PERSEUS_PRELOAD "")
if(PERSEUS_SANITIZE MATCHES address)
  set(runtime libasan.so)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    set(runtime libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so)
  endif()
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${runtime} OUTPUT_VARIABLE PERSEUS_PRELOAD
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(PERSEUS_SANITIZE)
  target_compile_options(perseus_options INTERFACE -fsanitize=${PERSEUS_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  if(PERSEUS_SANITIZE MATCHES undefined)
    # Most of the cost of this sanitizer, for what the address sanitizer sees as well; and alignment, which only the modules in
    # PERSEUS_MODULES_OF_BYTES can get wrong.
    target_compile_options(perseus_options INTERFACE -fno-sanitize=null,vptr,object-size
                           $<$<NOT:$<BOOL:$<TARGET_PROPERTY:PERSEUS_OF_BYTES>>>:-fno-sanitize=alignment>)
  endif()
  target_link_options(perseus_options INTERFACE -fsanitize=${PERSEUS_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang AND PERSEUS_PRELOAD)
    # One runtime for programs and libraries, as g++ has it (fuzzers have their own: libFuzzer needs it in the program), and a
    # linker that is quicker with such programs.
    get_filename_component(runtimes ${PERSEUS_PRELOAD} DIRECTORY)
    target_link_options(perseus_options INTERFACE -Wl,-rpath,${runtimes} -fuse-ld=lld
                        $<IF:$<BOOL:$<TARGET_PROPERTY:PERSEUS_FUZZER>>,-static-libsan,-shared-libsan>)
    # A function looked up in a library by name has our declarations' types on one side only.
    target_compile_options(perseus_options INTERFACE -fno-sanitize=function)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # GCC's manual: the sanitizers' instrumentation causes false positives of this warning; release builds keep it on.
    target_compile_options(perseus_options INTERFACE -Wno-maybe-uninitialized)
    # Asio has fences, which the thread sanitizer does not see.
    if(PERSEUS_SANITIZE MATCHES thread)
      target_compile_options(perseus_options INTERFACE -Wno-tsan)
    endif()
  endif()
endif()

# The presets compile several files of a folder as one (CMAKE_UNITY_BUILD), which halves the time. These have
# a name of their own that a neighbor in the same batch has too, so they are compiled alone; c_abi.cpp as libperseus has it
# again beside the module, and request_reader.cpp as the one file of http that fuzzers look into.
set(PERSEUS_COMPILED_ALONE
  src/training/client/c_abi.cpp src/io/http/request_reader.cpp
  src/io/report/bundle.cpp src/io/formats/profile_csv.cpp
  tests/io/formats/dag_json_test.cpp tests/io/formats/frequency_plan_test.cpp tests/io/formats/plan_file_test.cpp
  tests/io/formats/profile_csv_test.cpp
  tests/planning/planner/exact_property_test.cpp)
list(TRANSFORM PERSEUS_COMPILED_ALONE PREPEND ${CMAKE_SOURCE_DIR}/)

# perseus_compiled_alone(FILE...): takes those of PERSEUS_COMPILED_ALONE among the files out of unity builds.
function(perseus_compiled_alone)
  foreach(source IN LISTS ARGN)
    if(source IN_LIST PERSEUS_COMPILED_ALONE)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# perseus_sources(VAR PATTERN): the files that match, or an empty translation unit where there are none yet.
function(perseus_sources variable pattern)
  file(GLOB sources CONFIGURE_DEPENDS ${pattern})
  if(NOT sources)
    set(sources ${CMAKE_BINARY_DIR}/empty.cpp)
    file(CONFIGURE OUTPUT ${sources} CONTENT "// A folder without sources yet.\n")
  endif()
  perseus_compiled_alone(${sources})
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# Builds with sanitizers are not optimized, which halves their time, except modules on which tests would wait.
set(PERSEUS_MODULES_THAT_COMPUTE base graph model planner baselines checker site emulator site_emulator profiling partitioner calibration reproduction what_if policies power)
# Modules with instrumentation for fuzzing; of http only one file.
set(PERSEUS_MODULES_THAT_PARSE formats trace device simulated_gpu jobs profiles policies access live plans power views alerts service routes openadr)
# Modules that read shared memory or data of drivers.
set(PERSEUS_MODULES_OF_BYTES simulated_gpu device clock_control)

# perseus_module(GROUP/NAME [MODULE...]): src/GROUP/NAME/*.cpp as the library perseus_NAME, which may include the modules
# listed after it.
function(perseus_module folder)
  get_filename_component(name ${folder} NAME)
  perseus_sources(sources ${CMAKE_SOURCE_DIR}/src/${folder}/*.cpp)
  add_library(perseus_${name} STATIC ${sources})
  target_link_libraries(perseus_${name} PUBLIC perseus_options)
  if(PERSEUS_SANITIZE MATCHES address AND name IN_LIST PERSEUS_MODULES_THAT_COMPUTE)
    target_compile_options(perseus_${name} PRIVATE -O2)
  endif()
  if(name IN_LIST PERSEUS_MODULES_OF_BYTES)
    set_target_properties(perseus_${name} PROPERTIES PERSEUS_OF_BYTES ON)
  endif()
  if(PERSEUS_FUZZ AND name IN_LIST PERSEUS_MODULES_THAT_PARSE)
    target_compile_options(perseus_${name} PRIVATE -fsanitize=fuzzer-no-link)
  elseif(PERSEUS_FUZZ AND name STREQUAL http)
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/io/http/request_reader.cpp PROPERTIES
                                COMPILE_OPTIONS -fsanitize=fuzzer-no-link)
  endif()
  foreach(module IN LISTS ARGN)
    target_link_libraries(perseus_${name} PUBLIC perseus_${module})
  endforeach()
endfunction()
