# Copies the package to DESTINATION, with LIBRARY and HELPER and the libraries that a system may lack, and their licenses, in
# perseus/lib.

file(REMOVE_RECURSE ${DESTINATION})
file(COPY ${SOURCE}/perseus ${SOURCE}/pyproject.toml ${SOURCE}/setup.py ${SOURCE}/README.md ${SOURCE}/../LICENSE ${SOURCE}/../NOTICE DESTINATION ${DESTINATION}
     PATTERN __pycache__ EXCLUDE PATTERN lib EXCLUDE)
set(lib ${DESTINATION}/perseus/lib)
file(MAKE_DIRECTORY ${lib})
file(COPY_FILE ${LIBRARY} ${lib}/libperseus.so)
file(COPY ${HELPER} DESTINATION ${lib})

include(${SOURCE}/../packaging/bundle_libraries.cmake)
perseus_bundle(${lib} ${LIBRARY} ${HELPER})
