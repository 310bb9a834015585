# zklock-transport, the helper through which zklock speaks TLS and SASL. It is a separate program, so that zklock
# needs only libc.

find_path(SASL_INCLUDE_DIR sasl/sasl.h)
find_library(SASL_LIBRARY sasl2)
if(NOT SASL_INCLUDE_DIR OR NOT SASL_LIBRARY)
  zklock_need("Cyrus SASL" libsasl2-dev)
endif()
find_package(OpenSSL 3.0 QUIET)
if(NOT OPENSSL_FOUND)
  zklock_need("OpenSSL 3" libssl-dev)
endif()

file(GLOB transport_sources CONFIGURE_DEPENDS src/transport/*.cc)
add_executable(zklock-transport ${transport_sources})
target_include_directories(zklock-transport PRIVATE src ${SASL_INCLUDE_DIR})
target_compile_options(zklock-transport PRIVATE -Wconversion -Wsign-conversion)
target_link_libraries(zklock-transport PRIVATE zklock_flags zklock_hardening zklock_older_glibc OpenSSL::SSL
                      ${SASL_LIBRARY})
if(ZKLOCK_SANITIZE)
  target_compile_definitions(zklock-transport PRIVATE ZKLOCK_SANITIZED)
elseif(ZKLOCK_STATIC)
  target_link_options(zklock-transport PRIVATE -static-libstdc++ -static-libgcc)
endif()
target_link_options(zklock-transport PRIVATE $<$<CONFIG:Release>:-s> -Wl,-z,relro,-z,now)
install(TARGETS zklock-transport DESTINATION ${CMAKE_INSTALL_LIBEXECDIR} COMPONENT transport)
