# perseus_bundle(FOLDER FILE... [EXCEPT NAME...]): copies the shared libraries that programs and libraries FILE need to a
# folder, each with the license text of its Debian package. The C and C++ runtime, OpenSSL and zlib stay those of the system that
# runs them, and so do the libraries libNAME.
function(perseus_bundle folder)
  cmake_parse_arguments(PARSE_ARGV 1 bundle "" "" EXCEPT)
  set(systems c m dl rt pthread resolv gcc_s "stdc\\+\\+" asan clang_rt ubsan tsan ssl crypto z perseus ${bundle_EXCEPT})
  list(JOIN systems "|" systems)
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${bundle_UNPARSED_ARGUMENTS} RESOLVED_DEPENDENCIES_VAR needed
       PRE_EXCLUDE_REGEXES "^(ld-linux|lib(${systems}))[-.]")
  foreach(library IN LISTS needed)
    get_filename_component(real ${library} REALPATH)
    get_filename_component(name ${library} NAME)
    file(COPY_FILE ${real} ${folder}/${name})
    string(REGEX REPLACE "^/usr/lib/" "/lib/" short ${real}) # some packages use the one path, some the other
    execute_process(COMMAND dpkg-query -S ${real} ${short} OUTPUT_VARIABLE package ERROR_QUIET)
    string(REGEX REPLACE "[:,].*" "" package "${package}")
    if(package AND EXISTS /usr/share/doc/${package}/copyright)
      file(COPY_FILE /usr/share/doc/${package}/copyright ${folder}/${package}.copyright)
    endif()
  endforeach()
endfunction()
