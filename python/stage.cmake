# Copies the package to DESTINATION, with LIBRARY and HELPER and the libraries that a system may lack in perseus/lib.

file(REMOVE_RECURSE ${DESTINATION})
file(COPY ${SOURCE}/perseus ${SOURCE}/pyproject.toml ${SOURCE}/setup.py ${SOURCE}/README.md ${SOURCE}/../LICENSE ${SOURCE}/../NOTICE DESTINATION ${DESTINATION}
     PATTERN __pycache__ EXCLUDE PATTERN lib EXCLUDE)
set(lib ${DESTINATION}/perseus/lib)
file(MAKE_DIRECTORY ${lib})
file(COPY_FILE ${LIBRARY} ${lib}/libperseus.so)
file(COPY ${HELPER} DESTINATION ${lib})

file(GET_RUNTIME_DEPENDENCIES LIBRARIES ${LIBRARY} EXECUTABLES ${HELPER} RESOLVED_DEPENDENCIES_VAR needed
     PRE_EXCLUDE_REGEXES "^(ld-linux|lib(c|m|dl|rt|pthread|gcc_s|stdc\\+\\+|asan|ubsan|tsan|ssl|crypto|z))[-.]")
foreach(library IN LISTS needed)
  get_filename_component(real ${library} REALPATH)
  get_filename_component(name ${library} NAME)
  file(COPY_FILE ${real} ${lib}/${name})
endforeach()
