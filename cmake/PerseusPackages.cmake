# `cpack --config BUILD/CPackConfig.cmake -G DEB` makes four Debian packages from the components, -G RPM four RPM packages, -G TGZ
# one tarball.
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
# Explicit, since packaging/bundle_packages.cmake copies the libraries whose packages have other names in the next Debian;
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

# For RHEL 9 and later, Fedora and openSUSE. What a package needs is found in its programs, without what it contains.
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_RELEASE 1)
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
set(CPACK_RPM_PACKAGE_RELOCATABLE OFF)
set(CPACK_RPM_PACKAGE_GROUP Unspecified)
set(CPACK_RPM_PACKAGE_AUTOREQPROV ON)
set(bundled "lib(boost|fmt|toml|prometheus|perseus|nvidia|cuda)[^ ]*")
set(CPACK_RPM_SPEC_MORE_DEFINE "%global __requires_exclude ^${bundled}$
%global __provides_exclude ^lib(boost|fmt|toml|prometheus|nvidia|cuda)[^ ]*$
%global _build_id_links none
%global __os_install_post %{nil}
%global debug_package %{nil}")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/lib/systemd /usr/lib/systemd/system /usr/lib/sysusers.d /usr/lib/cmake
    /usr/share/pkgconfig /usr/share/licenses /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/zsh
    /usr/share/zsh/site-functions /usr/share/fish /usr/share/fish/vendor_completions.d /usr/share/man/man1 /usr/share/man/man8)
set(rpm ${CMAKE_SOURCE_DIR}/packaging/rpm)
set(same_version "= ${PROJECT_VERSION}-1")
foreach(component PERSEUS SERVER CLIENT DEV)
  string(REPLACE "\n" ";" lines "${CPACK_DEBIAN_${component}_DESCRIPTION}")
  list(POP_FRONT lines CPACK_RPM_${component}_PACKAGE_SUMMARY)
  list(JOIN lines "\n" CPACK_RPM_${component}_PACKAGE_DESCRIPTION)
endforeach()
set(CPACK_RPM_PERSEUS_PACKAGE_NAME perseus)
set(CPACK_RPM_PERSEUS_PACKAGE_REQUIRES "perseus-client ${same_version}, libpq.so.5()(64bit)")
set(CPACK_RPM_SERVER_PACKAGE_NAME perseus-server)
set(CPACK_RPM_SERVER_PACKAGE_ARCHITECTURE noarch)
set(CPACK_RPM_SERVER_PACKAGE_REQUIRES "perseus >= ${PROJECT_VERSION}, systemd")
set(CPACK_RPM_SERVER_USER_FILELIST "%config(noreplace) /etc/perseus/server.toml" "%config(noreplace) /etc/perseus/relay.env")
set(CPACK_RPM_CLIENT_PACKAGE_NAME perseus-client)
set(CPACK_RPM_DEV_PACKAGE_NAME perseus-devel)
set(CPACK_RPM_DEV_PACKAGE_REQUIRES "perseus-client ${same_version}")
foreach(component SERVER CLIENT)
  string(TOLOWER ${component} folder)
  set(CPACK_RPM_${component}_POST_INSTALL_SCRIPT_FILE ${rpm}/${folder}/post)
  set(CPACK_RPM_${component}_PRE_UNINSTALL_SCRIPT_FILE ${rpm}/${folder}/preun)
  set(CPACK_RPM_${component}_POST_UNINSTALL_SCRIPT_FILE ${rpm}/${folder}/postun)
endforeach()

set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
include(CPack)

