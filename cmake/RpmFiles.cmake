# Run by CPack before it makes a package: in an .rpm, what Debian has its own places and formats for is
# where other systems have it.

if(CPACK_GENERATOR STREQUAL "RPM")
  set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/zklock/usr/share)
  file(RENAME ${share}/zsh/vendor-completions ${share}/zsh/site-functions)
  # Only Debian has the text of the licence in another package.
  file(COPY ${CMAKE_CURRENT_LIST_DIR}/../LICENSE DESTINATION ${share}/doc/zklock)
  file(REMOVE_RECURSE ${share}/doc/zklock/changelog.Debian.gz ${share}/lintian)
endif()
