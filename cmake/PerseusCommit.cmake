# BUILD/commit/perseus_commit.h: PERSEUS_COMMIT, the commit of the sources with "-dirty" after uncommitted changes, or
# "unknown" outside of a repository. Written at each build, and only when it changes. -DPERSEUS_COMMIT=... fixes it.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(PERSEUS_COMMIT "" CACHE STRING "Commit that --version prints; empty: that of the sources")
  set(command ${CMAKE_COMMAND} -D SOURCE=${CMAKE_SOURCE_DIR} -D OUTPUT=${CMAKE_BINARY_DIR}/commit/perseus_commit.h
              -D "COMMIT=${PERSEUS_COMMIT}" -P ${CMAKE_CURRENT_LIST_FILE})
  execute_process(COMMAND ${command} COMMAND_ERROR_IS_FATAL ANY)
  add_custom_target(perseus_commit COMMAND ${command} BYPRODUCTS ${CMAKE_BINARY_DIR}/commit/perseus_commit.h VERBATIM)
  return()
endif()

if(NOT COMMIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                  OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT COMMIT)
  set(COMMIT unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define PERSEUS_COMMIT \"${COMMIT}\"\n")
