# What `cmake --install` installs, by component:
#   perseus  the program, its private programs and libraries, documentation, examples
#   server   units, configuration and user of server and relay
#   client   libperseus.so.1 and perseus-clockd with its unit
#   dev      headers, libperseus.so, the CMake package and the pkg-config file
# The result may be moved: programs find each other, and libraries, relative to themselves.
include(CMakePackageConfigHelpers)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON) # of cpack too, which would build tests and benchmarks

file(RELATIVE_PATH lib_from_bin /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
file(RELATIVE_PATH lib_from_private /${PERSEUS_PRIVATE_DIR} /${CMAKE_INSTALL_LIBDIR})
set_target_properties(perseus perseus-clockd PROPERTIES INSTALL_RPATH "$ORIGIN/${lib_from_bin}/perseus")
# A tarball's libraries need each other: DT_RPATH, unlike DT_RUNPATH, holds for them too.
target_link_options(perseus PRIVATE -Wl,--disable-new-dtags)
set_target_properties(perseus-replay PROPERTIES INSTALL_RPATH "$ORIGIN/${lib_from_private};$ORIGIN")
set_target_properties(libperseus PROPERTIES INSTALL_RPATH "$ORIGIN/perseus")
set_target_properties(cuda_simulated PROPERTIES INSTALL_RPATH "$ORIGIN")
set_target_properties(nvml_simulated PROPERTIES INSTALL_RPATH "$ORIGIN/..")

set(PERSEUS_ZSH_DIR ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING
    "Where zsh looks for completion; on Debian in /usr: share/zsh/vendor-completions")

install(TARGETS perseus RUNTIME COMPONENT perseus)
install(TARGETS perseus-replay RUNTIME DESTINATION ${PERSEUS_PRIVATE_DIR} COMPONENT perseus)
install(TARGETS cuda_simulated LIBRARY DESTINATION ${PERSEUS_PRIVATE_DIR} COMPONENT perseus)
install(TARGETS nvml_simulated LIBRARY DESTINATION ${PERSEUS_PRIVATE_DIR}/simulated COMPONENT perseus NAMELINK_SKIP)
install(FILES README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md SECURITY.md CITATION.cff NOTICE
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT perseus)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/perseus COMPONENT perseus)
install(FILES web/dist/LICENSES DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/perseus COMPONENT perseus RENAME web)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT perseus)
install(DIRECTORY data DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT perseus)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT perseus PATTERN __pycache__ EXCLUDE
        PATTERN CMakeLists.txt EXCLUDE)

# Examples for operators: of the node's client for Slurm, of the server the rest.
install(DIRECTORY deploy/slurm DESTINATION ${CMAKE_INSTALL_DATADIR}/perseus COMPONENT client USE_SOURCE_PERMISSIONS)
install(DIRECTORY deploy/grafana deploy/helm deploy/kubernetes deploy/prometheus
        DESTINATION ${CMAKE_INSTALL_DATADIR}/perseus COMPONENT perseus)

install(DIRECTORY ${CMAKE_BINARY_DIR}/manual/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT perseus
        FILES_MATCHING PATTERN *.1)
install(FILES packaging/man/perseus-clockd.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8 COMPONENT client)
install(FILES ${CMAKE_BINARY_DIR}/manual/perseus.bash RENAME perseus
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT perseus)
install(FILES ${CMAKE_BINARY_DIR}/manual/_perseus DESTINATION ${PERSEUS_ZSH_DIR} COMPONENT perseus)
install(FILES ${CMAKE_BINARY_DIR}/manual/perseus.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
        COMPONENT perseus)

foreach(component server client)
  install(CODE "
    set(COMPONENT ${component})
    set(SOURCE ${CMAKE_SOURCE_DIR}/packaging)
    set(BINDIR ${CMAKE_INSTALL_BINDIR})
    include(${CMAKE_SOURCE_DIR}/packaging/install_system_files.cmake)" COMPONENT ${component})
endforeach()

install(TARGETS perseus-clockd RUNTIME COMPONENT client)
install(TARGETS libperseus EXPORT perseusTargets LIBRARY COMPONENT client NAMELINK_COMPONENT dev
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/perseus DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/perseus)
install(EXPORT perseusTargets FILE perseusConfig.cmake NAMESPACE perseus:: DESTINATION ${package} COMPONENT dev)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/perseusConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/perseusConfigVersion.cmake DESTINATION ${package} COMPONENT dev)
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(packaging/perseus.pc.in ${CMAKE_BINARY_DIR}/perseus.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/perseus.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

include(PerseusPackages)
# What packages contain, and no more: `cpack` does not build all targets.
add_custom_target(packaged DEPENDS perseus perseus-clockd perseus-replay libperseus nvml_simulated cuda_simulated)
foreach(component ${CPACK_COMPONENTS_ALL}) # last: it compresses installed files
  install(CODE "
    set(COMPONENT ${component})
    set(SOURCE ${CMAKE_SOURCE_DIR}/packaging)
    set(VERSION ${PROJECT_VERSION})
    set(CONTACT \"${CPACK_PACKAGE_CONTACT}\")
    include(${CMAKE_SOURCE_DIR}/packaging/deb/install_debian_files.cmake)" COMPONENT ${component})
endforeach()
