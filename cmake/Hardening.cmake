# zklock_hardening: protection by the compiler and the C library against errors in code that reads untrusted
# input. Not used with sanitizers, which find more, or without optimisation, which FORTIFY needs.

add_library(zklock_hardening INTERFACE)
set(hardens $<CONFIG:Release>)
if(ZKLOCK_SANITIZE)
  set(hardens 0)
endif()
include(CheckCXXCompilerFlag)
# The last two do the same on different processors.
foreach(flag IN ITEMS -fstack-protector-strong -fstack-clash-protection -fcf-protection
                      -mbranch-protection=standard)
  string(MAKE_C_IDENTIFIER "ZKLOCK_HAS${flag}" known)
  check_cxx_compiler_flag(${flag} ${known})
  if(${known})
    target_compile_options(zklock_hardening INTERFACE $<${hardens}:${flag}>)
  endif()
endforeach()
# Passed as options: definitions would precede the -U, which removes the compiler's built-in value, if any.
target_compile_options(zklock_hardening INTERFACE $<${hardens}:-U_FORTIFY_SOURCE>
                                                 $<${hardens}:-D_FORTIFY_SOURCE=3>)
target_compile_definitions(zklock_hardening INTERFACE $<${hardens}:_GLIBCXX_ASSERTIONS>)
