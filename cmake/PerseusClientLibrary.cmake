# libperseus.so: the C ABI of include/perseus/perseus.h. It shows only what src/training/client/libperseus.map names
# (tests/training/client/test_symbols.py), and brings its modules along, so that a training process needs nothing of ours but it.
foreach(module base http simulated_gpu device clock_control model formats client)
  set_target_properties(perseus_${module} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endforeach()
target_link_libraries(perseus_client PRIVATE Boost::json ${CMAKE_DL_LIBS})
target_compile_definitions(perseus_client PRIVATE PERSEUS_VERSION="${PROJECT_VERSION}")

add_library(libperseus SHARED src/training/client/c_abi.cpp)
add_library(perseus::perseus ALIAS libperseus)
target_compile_definitions(libperseus PRIVATE PERSEUS_VERSION="${PROJECT_VERSION}")
target_link_libraries(libperseus PRIVATE perseus_client)
target_include_directories(libperseus INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>)
# The soname is PERSEUS_ABI_VERSION of perseus.h.
set_target_properties(libperseus PROPERTIES OUTPUT_NAME perseus EXPORT_NAME perseus VERSION 1.${PROJECT_VERSION} SOVERSION 1
                      LINK_DEPENDS ${CMAKE_SOURCE_DIR}/src/training/client/libperseus.map)
target_link_options(libperseus PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/src/training/client/libperseus.map
                                       -Wl,--exclude-libs,ALL)
if(NOT PERSEUS_SANITIZE) # a sanitizer's functions are the program's
  target_link_options(libperseus PRIVATE -Wl,-z,defs)
endif()
