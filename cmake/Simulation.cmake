# simulate: the client of src/, in virtual time (tests/simulation/README.md). client_library.cc
# defines all functions of the client library that src/ calls, so that the linker takes none from
# the library.

file(GLOB simulation_sources CONFIGURE_DEPENDS tests/simulation/*.cc)
add_executable(simulate ${simulation_sources} ${CMAKE_CURRENT_SOURCE_DIR}/tests/support/request_script.cc)
if(ZKLOCK_UNITY)
  zklock_unite(simulate)
  # It defines a type outside all namespaces from types in anonymous ones, which may be done only in a main file.
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/tests/simulation/client_library.cc
                              PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endif()
target_include_directories(simulate PRIVATE tests)
target_compile_options(simulate PRIVATE -Wconversion -O2)
target_link_libraries(simulate PRIVATE zklock_flags zklock_core)
foreach(call IN ITEMS poll send socket fcntl dup3 setsockopt shutdown close)
  target_link_options(simulate PRIVATE -Wl,--wrap=${call})
endforeach()
target_link_options(simulate PRIVATE $<$<BOOL:${ZKLOCK_LTO}>:-fno-lto>)

# The server tests compare the simulated servers with real ones.
add_dependencies(server_tests simulate)
