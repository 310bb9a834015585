# The libraries that zklock uses; a failure names the missing Debian package.

include(CheckFunctionExists)

function(zklock_need what package)
  message(FATAL_ERROR "${what} not found: apt-get install ${package}"
                      " (or scripts/dependencies install)")
endfunction()

# zookeeper::client, the single-threaded C client.
find_path(ZOOKEEPER_INCLUDE_DIR zookeeper/zookeeper.h)
# Always linked statically, so that the data it receives can be checked first (--wrap=recv).
find_library(ZOOKEEPER_STATIC_LIBRARY libzookeeper_st.a)
set(zookeeper_library ${ZOOKEEPER_STATIC_LIBRARY})
if(NOT ZOOKEEPER_INCLUDE_DIR OR NOT zookeeper_library)
  zklock_need("The ZooKeeper C client (zookeeper/zookeeper.h, libzookeeper_st)"
              libzookeeper-st-dev)
endif()
if(NOT zookeeper_library MATCHES "\\.a$")
  message(FATAL_ERROR "${zookeeper_library} is not a static library: zklock could not check what the"
                      " client receives before the client decodes it")
endif()

# Whether the library has TLS and SASL depends on how it was built (Debian's has neither). Only
# linking shows it, because its header hides the declarations by default.
set(CMAKE_REQUIRED_QUIET ON)
set(zookeeper_needs m)
set(CMAKE_REQUIRED_LIBRARIES ${zookeeper_library} ${zookeeper_needs})
check_function_exists(zookeeper_init2 ZOOKEEPER_LINKS)
if(NOT ZOOKEEPER_LINKS)
  list(APPEND zookeeper_needs ssl crypto sasl2)
  set(CMAKE_REQUIRED_LIBRARIES ${zookeeper_library} ${zookeeper_needs})
  check_function_exists(zookeeper_init2 ZOOKEEPER_LINKS_WITH_TLS_AND_SASL)
  if(NOT ZOOKEEPER_LINKS_WITH_TLS_AND_SASL)
    message(FATAL_ERROR "${zookeeper_library} does not link;"
                        " apt-get install libzookeeper-st-dev installs one that does")
  endif()
endif()
check_function_exists(zookeeper_init_ssl ZKLOCK_HAVE_TLS)
check_function_exists(zookeeper_init_sasl ZKLOCK_HAVE_SASL)
unset(CMAKE_REQUIRED_LIBRARIES)
unset(CMAKE_REQUIRED_QUIET)

add_library(zookeeper::client INTERFACE IMPORTED)
target_include_directories(zookeeper::client INTERFACE ${ZOOKEEPER_INCLUDE_DIR})
target_link_libraries(zookeeper::client INTERFACE ${zookeeper_library} ${zookeeper_needs})
target_compile_definitions(zookeeper::client INTERFACE
                           $<$<BOOL:${ZKLOCK_HAVE_TLS}>:HAVE_OPENSSL_H>
                           $<$<BOOL:${ZKLOCK_HAVE_SASL}>:HAVE_CYRUS_SASL_H>)

find_package(nlohmann_json QUIET)
if(NOT nlohmann_json_FOUND)
  zklock_need("nlohmann/json" nlohmann-json3-dev)
endif()

# Debian has fmt only as a shared library. A binary that needs only libc has src/cli/text/fmt.cc instead.
find_package(fmt QUIET)
if(NOT fmt_FOUND)
  zklock_need(fmt libfmt-dev)
endif()
add_library(zklock_fmt INTERFACE)
if(ZKLOCK_STATIC)
  target_include_directories(zklock_fmt SYSTEM INTERFACE
                             $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
else()
  target_link_libraries(zklock_fmt INTERFACE fmt::fmt)
endif()
