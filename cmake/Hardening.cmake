# zklock_hardening: what the compiler and the C library do against errors in code that reads what others
# send. Not with sanitizers, which find more, nor without optimisation, which FORTIFY needs.

add_library(zklock_hardening INTERFACE)
set(hardens $<CONFIG:Release>)
if(ZKLOCK_SANITIZE)
  set(hardens 0)
endif()
include(CheckCXXCompilerFlag)
# The last two are the same for different processors.
foreach(flag IN ITEMS -fstack-protector-strong -fstack-clash-protection -fcf-protection
                      -mbranch-protection=standard)
  string(MAKE_C_IDENTIFIER "ZKLOCK_HAS${flag}" known)
  check_cxx_compiler_flag(${flag} ${known})
  if(${known})
    target_compile_options(zklock_hardening INTERFACE $<${hardens}:${flag}>)
  endif()
endforeach()
# Options, not definitions, which would precede the -U for a value that the compiler may have built in.
target_compile_options(zklock_hardening INTERFACE $<${hardens}:-U_FORTIFY_SOURCE>
                                                 $<${hardens}:-D_FORTIFY_SOURCE=3>)
target_compile_definitions(zklock_hardening INTERFACE $<${hardens}:_GLIBCXX_ASSERTIONS>)
