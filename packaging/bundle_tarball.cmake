# Copies the libraries that the staged programs need into the tarball's lib/perseus.
include(${CMAKE_CURRENT_LIST_DIR}/bundle_libraries.cmake)
file(GLOB_RECURSE programs ${CPACK_TEMPORARY_DIRECTORY}/perseus)
list(FILTER programs INCLUDE REGEX /bin/perseus$)
if(NOT programs)
  message(FATAL_ERROR "${CPACK_TEMPORARY_DIRECTORY}: no bin/perseus")
endif()
foreach(program IN LISTS programs)
  get_filename_component(bin ${program} DIRECTORY)
  get_filename_component(prefix ${bin} DIRECTORY)
  perseus_bundle(${prefix}/lib/perseus ${program} ${bin}/perseus-clockd ${prefix}/lib/perseus/perseus-replay
                 ${prefix}/lib/libperseus.so.1)
endforeach()
