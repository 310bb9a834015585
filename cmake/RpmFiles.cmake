# CPack runs this before it makes a package. In an .rpm, files for which Debian has its own places and formats go
# where other systems have them.

if(CPACK_GENERATOR STREQUAL "RPM")
  set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/zklock/usr/share)
  file(RENAME ${share}/zsh/vendor-completions ${share}/zsh/site-functions)
  # Only Debian provides the text of the licence in another package.
  file(COPY ${CMAKE_CURRENT_LIST_DIR}/../LICENSE DESTINATION ${share}/doc/zklock
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  file(REMOVE_RECURSE ${share}/doc/zklock/changelog.Debian.gz ${share}/lintian)
endif()
