# perseus_bundle(FOLDER FILE...): copies the shared libraries that programs and libraries FILE need to a folder, each with the
# license text of its Debian package. The C and C++ runtime, OpenSSL and zlib stay those of the system that runs them.
function(perseus_bundle folder)
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${ARGN} RESOLVED_DEPENDENCIES_VAR needed
       PRE_EXCLUDE_REGEXES "^(ld-linux|lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\\+\\+|asan|ubsan|tsan|ssl|crypto|z|perseus))[-.]")
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
