# Installs units, configuration and the server's user, for a prefix that is known only now.
#
# Units name programs by absolute paths. A tarball is made for /usr/local. Below /usr, configuration is in /etc.
#
# Input: COMPONENT (server or client), SOURCE (this folder), BINDIR, CMAKE_INSTALL_PREFIX, $DESTDIR (file(INSTALL) adds it).
set(installed_prefix ${CMAKE_INSTALL_PREFIX})
if(CMAKE_INSTALL_PREFIX MATCHES "/_CPack_Packages/")
  set(installed_prefix /usr/local)
endif()
set(configuration ${CMAKE_INSTALL_PREFIX}/etc)
if(CMAKE_INSTALL_PREFIX STREQUAL /usr)
  set(configuration /etc)
endif()

set(units perseus-clockd)
if(COMPONENT STREQUAL server)
  set(units perseus-server perseus-relay)
  file(INSTALL ${SOURCE}/sysusers/perseus-server.conf DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/sysusers.d)
  file(INSTALL ${SOURCE}/etc/server.toml ${SOURCE}/etc/relay.env DESTINATION ${configuration}/perseus)
endif()
foreach(unit IN LISTS units)
  file(READ ${SOURCE}/systemd/${unit}.service text)
  string(REPLACE /usr/bin/ ${installed_prefix}/${BINDIR}/ text "${text}")
  if(NOT installed_prefix STREQUAL /usr)
    string(REPLACE /etc/perseus/ ${installed_prefix}/etc/perseus/ text "${text}")
  endif()
  file(WRITE $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/systemd/system/${unit}.service "${text}")
endforeach()
