# zklock_older_glibc: lets a static binary that is built on a recent Debian also start on glibc 2.31; see
# packaging/README.md. Has no effect without -DZKLOCK_OLDER_GLIBC=ON.

add_library(zklock_older_glibc INTERFACE)
if(ZKLOCK_OLDER_GLIBC)
  if(NOT ZKLOCK_STATIC OR ZKLOCK_SANITIZE)
    message(FATAL_ERROR "ZKLOCK_OLDER_GLIBC needs ZKLOCK_STATIC and no ZKLOCK_SANITIZE: the shared libstdc++"
                        " of this host needs this host's glibc")
  endif()
  # An object, not a library: it has to precede the C library, wherever the references to it are.
  add_library(older_glibc OBJECT packaging/older_glibc.c)
  target_compile_options(older_glibc PRIVATE -O2 -fPIE -ffunction-sections)
  target_link_libraries(older_glibc PRIVATE zklock_flags zklock_hardening)
  target_sources(zklock_older_glibc INTERFACE $<TARGET_OBJECTS:older_glibc>)
endif()
