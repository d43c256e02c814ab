# Read by cpack once per generator. A Debian package is installed below /usr and /etc; a tarball contains the libraries
# that a system may lack.
if(CPACK_GENERATOR STREQUAL DEB)
  set(CPACK_SET_DESTDIR ON)
  set(CPACK_INSTALL_PREFIX /usr)
  set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/bundle_debs.cmake)
  unset(CPACK_PACKAGE_DESCRIPTION_SUMMARY) # each package has its own first line
endif()
if(CPACK_GENERATOR STREQUAL TGZ)
  set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/bundle_tarball.cmake)
endif()
