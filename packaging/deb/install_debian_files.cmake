# Installs what a Debian package needs beside its component: copyright, changelog, lintian's overrides; compresses pages.
#
# Input: COMPONENT, SOURCE (packaging/), VERSION, CONTACT, CMAKE_INSTALL_PREFIX, $DESTDIR. Only below a DESTDIR of cpack -G DEB.
if(NOT CMAKE_INSTALL_PREFIX STREQUAL /usr OR NOT "$ENV{DESTDIR}" MATCHES "/_CPack_Packages/[^/]*/DEB/")
  return()
endif()
set(package perseus-${COMPONENT})
if(COMPONENT STREQUAL perseus)
  set(package perseus)
elseif(COMPONENT STREQUAL dev)
  set(package libperseus-dev)
endif()
set(root $ENV{DESTDIR}/usr)
set(doc ${root}/share/doc/${package})

file(INSTALL ${SOURCE}/deb/copyright DESTINATION /usr/share/doc/${package})
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${doc}/changelog.Debian "perseus (${VERSION}-1) unstable; urgency=medium

  * Release ${VERSION}; /usr/share/doc/perseus/CHANGELOG.md lists the changes.

 -- ${CONTACT}  ${now}
")
set(to_compress ${doc}/changelog.Debian)
file(GLOB pages ${root}/share/man/man*/*.[0-9])
execute_process(COMMAND gzip -9nf ${to_compress} ${pages} COMMAND_ERROR_IS_FATAL ANY)
if(EXISTS ${SOURCE}/deb/${COMPONENT}/overrides)
  file(INSTALL ${SOURCE}/deb/${COMPONENT}/overrides DESTINATION /usr/share/lintian/overrides RENAME ${package})
endif()
file(GLOB_RECURSE all LIST_DIRECTORIES true ${root}/share/* $ENV{DESTDIR}/etc/* ${root}/lib/systemd/* ${root}/lib/sysusers.d/*)
foreach(one IN LISTS all)
  if(IS_DIRECTORY ${one})
    file(CHMOD ${one} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endif()
endforeach()
