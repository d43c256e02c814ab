# `cpack --config BUILD/CPackConfig.cmake -G DEB` makes four Debian packages from the components, -G TGZ one tarball.
set(CPACK_PACKAGE_NAME perseus)
set(CPACK_PACKAGE_VENDOR "The Perseus authors")
set(CPACK_PACKAGE_CONTACT "The Perseus authors <perseus@users.noreply.github.com>" CACHE STRING "Maintainer in packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "GPU clocks that save energy in pipeline-parallel training")
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL perseus server client dev)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/packaging/cpack.cmake)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Explicit, since packaging/bundle_debs.cmake copies the libraries whose packages have other names in the next Debian;
# dpkg-shlibdeps would name them nevertheless. libssl3 and the others are in Debian 12 and 13.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
set(system_libraries "libc6 (>= 2.36), libgcc-s1, libssl3 (>= 3.0), libstdc++6 (>= 12), zlib1g")
set(same_version "(= ${PROJECT_VERSION}-1)")
set(deb ${CMAKE_SOURCE_DIR}/packaging/deb)

set(CPACK_DEBIAN_PERSEUS_PACKAGE_NAME perseus)
set(CPACK_DEBIAN_PERSEUS_PACKAGE_DEPENDS "perseus-client ${same_version}, libpq5, libsqlite3-0, ${system_libraries}")
set(CPACK_DEBIAN_PERSEUS_DESCRIPTION "GPU clocks that save energy in pipeline-parallel training
Plans a GPU clock for every computation of a training iteration, so that
each ends just in time: less energy, no slower. This package contains the
command line with the planner, a demo on simulated GPUs, and documentation.")

set(CPACK_DEBIAN_SERVER_PACKAGE_NAME perseus-server)
set(CPACK_DEBIAN_SERVER_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_SERVER_PACKAGE_SECTION net)
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "perseus (>= ${PROJECT_VERSION}), adduser")
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA ${deb}/server/conffiles ${deb}/server/postinst ${deb}/server/prerm
    ${deb}/server/postrm)
set(CPACK_DEBIAN_SERVER_DESCRIPTION "energy server of a training cluster (Perseus)
Runs the server that plans GPU clocks for all training jobs of a cluster, as
a systemd service, and contains a unit for the relay of a host.")

set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME perseus-client)
set(CPACK_DEBIAN_CLIENT_PACKAGE_DEPENDS "${system_libraries}")
set(CPACK_DEBIAN_CLIENT_PACKAGE_CONTROL_EXTRA ${deb}/client/postinst ${deb}/client/prerm ${deb}/client/postrm
    ${deb}/client/shlibs ${deb}/client/triggers)
set(CPACK_DEBIAN_CLIENT_DESCRIPTION "library and clock daemon for training nodes (Perseus)
Contains libperseus, which measures the computations of a training process
and follows plans, and perseus-clockd, the daemon that sets the clocks of
this node's GPUs and gives them back.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libperseus-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "perseus-client ${same_version}")
set(CPACK_DEBIAN_DEV_DESCRIPTION "headers of the Perseus client library
Contains the C and C++ headers of libperseus, its CMake package and its
pkg-config file.")

set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
include(CPack)

