# Read by cpack once per generator. Debian and RPM packages are installed below /usr and /etc; a tarball contains all libraries
# that a system may lack.
if(CPACK_GENERATOR MATCHES "DEB|RPM")
  set(CPACK_SET_DESTDIR ON)
  set(CPACK_INSTALL_PREFIX /usr)
  set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/bundle_packages.cmake)
  unset(CPACK_PACKAGE_DESCRIPTION_SUMMARY) # each package has its own first line
endif()
if(CPACK_GENERATOR STREQUAL TGZ)
  set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/bundle_tarball.cmake)
endif()
