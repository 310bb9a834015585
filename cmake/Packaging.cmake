# Files installed besides the binaries: manual pages, completions, an example configuration, licence
# and changelog. scripts/package builds and checks two packages: zklock, which needs only libc, and zklock-transport,
# whose OpenSSL and Cyrus SASL not everyone wants on every host. zklock recommends it: from a repository, both are
# installed; a single file is enough without TLS and SASL; and `apt install ./zklock_*.deb` does not fail because of a
# package that apt cannot find.

find_program(GZIP gzip REQUIRED)

# install_compressed(FILE NAME DIRECTORY): installs FILE as NAME.gz, reproducibly.
function(install_compressed file name directory)
  set(compressed ${CMAKE_CURRENT_BINARY_DIR}/compressed/${name}.gz)
  add_custom_command(OUTPUT ${compressed} DEPENDS ${file}
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/compressed
                     COMMAND ${GZIP} -9 -n -c ${file} > ${compressed} VERBATIM)
  set_property(GLOBAL APPEND PROPERTY zklock_compressed ${compressed})
  install(FILES ${compressed} DESTINATION ${directory} COMPONENT zklock)
endfunction()

file(GLOB manuals CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/man/*.[1-8])
foreach(manual IN LISTS manuals)
  string(REGEX REPLACE ".*\\." "" section ${manual})
  cmake_path(GET manual FILENAME name)
  install_compressed(${manual} ${name} ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

# Each shell has its own directory and naming scheme; Debian's zsh has a directory for packages.
install(FILES completions/zklock.bash RENAME zklock COMPONENT zklock
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
set(zsh_functions site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(zsh_functions vendor-completions)
endif()
install(FILES completions/_zklock DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${zsh_functions}
        COMPONENT zklock)
install(FILES completions/zklock.fish COMPONENT zklock
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

install(FILES packaging/zklock.conf DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT zklock)
install(FILES packaging/systemd/zklock-example.service
              packaging/systemd/zklock-example-job.service
              packaging/systemd/zklock-example-job.timer
              packaging/systemd/zklock-metrics.service
              packaging/systemd/zklock-metrics.timer
              packaging/monitoring/zklock-alerts.yml
              packaging/monitoring/zklock-icinga2.conf
              packaging/monitoring/zklock-nagios.cfg
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT zklock)
install(FILES packaging/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT zklock)
install_compressed(${CMAKE_CURRENT_SOURCE_DIR}/CHANGELOG.md changelog ${CMAKE_INSTALL_DOCDIR})
# Debian also requires its own changelog format. The time is SOURCE_DATE_EPOCH, if set.
string(TIMESTAMP changed "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(packaging/changelog.Debian.in generated/changelog.Debian @ONLY)
install_compressed(${CMAKE_CURRENT_BINARY_DIR}/generated/changelog.Debian changelog.Debian
                   ${CMAKE_INSTALL_DOCDIR})


# Debian wants both in each package.
set(transport_doc ${CMAKE_INSTALL_DATADIR}/doc/zklock-transport)
install(FILES packaging/copyright DESTINATION ${transport_doc} COMPONENT transport)
configure_file(packaging/changelog.transport.in generated/changelog.transport @ONLY)
set(compressed ${CMAKE_CURRENT_BINARY_DIR}/compressed/transport/changelog.Debian.gz)
add_custom_command(OUTPUT ${compressed} DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/generated/changelog.transport
                   COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/compressed/transport
                   COMMAND ${GZIP} -9 -n -c ${CMAKE_CURRENT_BINARY_DIR}/generated/changelog.transport
                           > ${compressed} VERBATIM)
set_property(GLOBAL APPEND PROPERTY zklock_compressed ${compressed})
install(FILES ${compressed} DESTINATION ${transport_doc} COMPONENT transport)

foreach(package IN ITEMS zklock zklock-transport)
  string(REPLACE zklock- "" component ${package})
  install(FILES packaging/lintian/${package} COMPONENT ${component}
          DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides)
endforeach()

get_property(compressed GLOBAL PROPERTY zklock_compressed)
add_custom_target(compressed ALL DEPENDS ${compressed})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PACKAGE_VENDOR "The zklock authors")
set(CPACK_PACKAGE_CONTACT "The zklock authors <zklock@users.noreply.github.com>")
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL zklock transport)
set(CPACK_DEBIAN_ZKLOCK_PACKAGE_NAME zklock)
set(CPACK_DEBIAN_ZKLOCK_PACKAGE_SUGGESTS zookeeperd)
# The client library is linked statically: Built-Using names the version of its sources. CPack has no
# variable for that field.
execute_process(COMMAND dpkg-query -W -f "\${source:Package} (= \${source:Version})" libzookeeper-st-dev
                OUTPUT_VARIABLE built_using ERROR_QUIET)
if(built_using)
  string(PREPEND built_using "\nBuilt-Using: ")
endif()
set(CPACK_DEBIAN_ZKLOCK_PACKAGE_RECOMMENDS "zklock-transport${built_using}")
set(CPACK_DEBIAN_TRANSPORT_PACKAGE_NAME zklock-transport)
set(CPACK_DEBIAN_TRANSPORT_PACKAGE_DEPENDS "zklock (= ${PROJECT_VERSION}-1), libsasl2-modules")
set(CPACK_DEBIAN_TRANSPORT_PACKAGE_SUGGESTS libsasl2-modules-gssapi-mit)
# The first line of a description is its summary. CPack would put the project's before it.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_DEBIAN_TRANSPORT_DESCRIPTION
"TLS and SASL to the ZooKeeper servers for zklock
The helper process through which zklock speaks TLS to the servers and
authenticates by SASL. zklock starts it for each connection if it is told to.")
set(CPACK_DEBIAN_ZKLOCK_DESCRIPTION
"runs a command while it holds a lock in ZooKeeper
Runs a script at most once at a time, on however many hosts it is started.
zklock queues for the lock, runs the command while it holds the lock, and
releases the lock when the command has ended. If it can no longer prove that
it holds the lock, the command is dead before the servers can give the lock
away.")
set(CPACK_STRIP_FILES OFF) # the linker strips it

# An .rpm of zklock alone: systems with rpm(8) have a different version of Cyrus SASL's library, so zklock-transport
# has to be built there. The settings make the .rpm reproducible; the .deb is so by default.
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_ZKLOCK_PACKAGE_NAME zklock)
set(CPACK_RPM_PACKAGE_RELEASE 1)
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
set(CPACK_RPM_PACKAGE_SUMMARY "Run a command while it holds a lock in ZooKeeper")
string(FIND "${CPACK_DEBIAN_ZKLOCK_DESCRIPTION}" "\n" summary_length)
string(SUBSTRING "${CPACK_DEBIAN_ZKLOCK_DESCRIPTION}" ${summary_length} -1 CPACK_RPM_PACKAGE_DESCRIPTION)
string(STRIP "${CPACK_RPM_PACKAGE_DESCRIPTION}" CPACK_RPM_PACKAGE_DESCRIPTION)
set(CPACK_RPM_SPEC_MORE_DEFINE
"%define _buildhost localhost
%define use_source_date_epoch_as_buildtime 1
%define clamp_mtime_to_source_date_epoch 1
%define _build_id_links none
%define __os_install_post %{nil}")
set(directories bash-completion bash-completion/completions fish fish/vendor_completions.d
    zsh zsh/site-functions doc man man/man1 man/man5 man/man7 man/man8)
list(TRANSFORM directories PREPEND /usr/share/)
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION ${directories})
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/cmake/RpmFiles.cmake)
if(CMAKE_CROSSCOMPILING)
  string(REGEX REPLACE "-.*" "" CPACK_RPM_PACKAGE_ARCHITECTURE ${CMAKE_LIBRARY_ARCHITECTURE})
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${ZKLOCK_DEBIAN_ARCHITECTURE})
endif()
include(CPack)
