# One test program for each suite (unit_tests from tests/unit/, ...). Each case is a ctest test
# labelled with its suite.

find_package(Catch2 QUIET)
if(NOT Catch2_FOUND OR Catch2_VERSION VERSION_LESS 2.13)
  zklock_need("Catch2 2.13 or 3" catch2)
endif()
if(Catch2_VERSION VERSION_LESS 3)
  # NoTests: a name that matches no case fails instead of passing without a test. Catch2 3 always does this.
  set(catch_definitions -D LIST_OPTIONS=--list-test-names-only -D "RUN_OPTIONS=-w NoTests")
  set(catch_headers)
else()
  set(catch_definitions -D "LIST_OPTIONS=--list-tests --verbosity quiet" -D RUN_OPTIONS=)
  set(catch_headers ${CMAKE_CURRENT_SOURCE_DIR}/tests/support/catch3)
endif()

# Without optimisation the tests take half as long to build, and not noticeably longer to run.
add_library(test_flags INTERFACE)
target_compile_options(test_flags INTERFACE -O0)
target_include_directories(test_flags INTERFACE ${catch_headers})
target_link_libraries(test_flags INTERFACE zklock_flags)
if(ZKLOCK_SANITIZE)
  # A few tests limit resources that the sanitizers' runtimes need in zklock, such as descriptors.
  target_compile_definitions(test_flags INTERFACE ZKLOCK_SANITIZED)
endif()

# Code shared by the suites. main() is separate, because it takes a long time to compile and never changes.
file(GLOB support_sources CONFIGURE_DEPENDS tests/support/*.cc)
list(REMOVE_ITEM support_sources ${CMAKE_CURRENT_SOURCE_DIR}/tests/support/main.cc)
file(GLOB test_main CONFIGURE_DEPENDS tests/support/main.cc)

add_library(support INTERFACE)
target_include_directories(support INTERFACE tests)
target_link_libraries(support INTERFACE zklock_core Catch2::Catch2)
if(test_main)
  add_library(test_main OBJECT ${test_main})
  target_link_libraries(test_main PRIVATE test_flags support)
  target_sources(support INTERFACE $<TARGET_OBJECTS:test_main>)
else()
  target_link_libraries(support INTERFACE Catch2::Catch2WithMain)
endif()
if(support_sources)
  add_library(test_support STATIC ${support_sources})
  target_include_directories(test_support PUBLIC tests)
  target_link_libraries(test_support PRIVATE test_flags PUBLIC zklock_core Catch2::Catch2)
  target_link_libraries(support INTERFACE test_support)
endif()

# Libraries for preloading: a resolver, a skewed clock, a fork() that fails, an fsync() that is interrupted.
add_library(test_resolver MODULE tests/support/resolver.c)
target_link_libraries(test_resolver PRIVATE ${CMAKE_DL_LIBS})
add_library(test_clock MODULE tests/support/skewed_clock.c)
target_link_libraries(test_clock PRIVATE ${CMAKE_DL_LIBS})
add_library(test_fork MODULE tests/support/refused_fork.c)
target_link_libraries(test_fork PRIVATE ${CMAKE_DL_LIBS})
add_library(test_fsync MODULE tests/support/interrupted_fsync.c)

# A program that locks through go-zookeeper; the other programs in tests/peers need no building.
find_program(ZKLOCK_GO go)
if(NOT ZKLOCK_GO)
  zklock_need("Go" golang-go)
endif()
find_path(ZKLOCK_GOPATH src/github.com/samuel/go-zookeeper/zk/lock.go PATHS /usr/share/gocode
          NO_DEFAULT_PATH)
if(NOT ZKLOCK_GOPATH)
  zklock_need("go-zookeeper" golang-github-samuel-go-zookeeper-dev)
endif()
set(go_peer ${CMAKE_CURRENT_BINARY_DIR}/go_peer)
add_custom_command(OUTPUT ${go_peer}
                   COMMAND ${CMAKE_COMMAND} -E env GO111MODULE=off GOPATH=${ZKLOCK_GOPATH}
                           GOCACHE=${CMAKE_CURRENT_BINARY_DIR}/go-cache GOFLAGS= ${ZKLOCK_GO} build
                           -p 1 -o ${go_peer} ${CMAKE_CURRENT_SOURCE_DIR}/tests/peers/go_peer.go
                   DEPENDS tests/peers/go_peer.go VERBATIM)
add_custom_target(test_go_peer DEPENDS ${go_peer})

# The environment of the tests. AddressSanitizer's options keep it from installing handlers for signals
# that a command should find ignored or at their defaults, and from insisting on being loaded before
# the preloaded libraries, which is not necessary.
set(environment ZKLOCK_SOURCE_DIR=${CMAKE_CURRENT_SOURCE_DIR}
    ZKLOCK_TEST_ZOOKEEPER_HEADER=${ZOOKEEPER_INCLUDE_DIR}/zookeeper/zookeeper.h
    ZKLOCK_TEST_RESOLVER=$<TARGET_FILE:test_resolver>
    ZKLOCK_TEST_CLOCK=$<TARGET_FILE:test_clock>
    ZKLOCK_TEST_FORK=$<TARGET_FILE:test_fork>
    ZKLOCK_TEST_FSYNC_LIBRARY=$<TARGET_FILE:test_fsync> ZKLOCK_TEST_GO_PEER=${go_peer} UBSAN_OPTIONS=print_stacktrace=1
    ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0:verify_asan_link_order=0)
if(TARGET zklock)
  list(APPEND environment ZKLOCK_BINARY=$<TARGET_FILE:zklock> ZKLOCK_SIMULATE=$<TARGET_FILE:simulate>)
endif()

foreach(suite IN ITEMS unit server cli faults model)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS tests/${suite}/*.cc)
  if(NOT sources)
    continue()
  endif()
  add_executable(${suite}_tests ${sources})
  add_dependencies(${suite}_tests test_resolver test_clock test_fork test_fsync)
  if(suite STREQUAL cli)
    add_dependencies(cli_tests test_go_peer)
    # These tests run zklock as a program. Instrumenting them would triple their compile time, and tell nothing about
    # zklock.
    if(ZKLOCK_SANITIZE)
      target_compile_options(cli_tests PRIVATE -fno-sanitize=all)
    endif()
  endif()
  # Catch2's header and those of the standard library take two thirds of the time to compile a small test.
  target_precompile_headers(${suite}_tests PRIVATE <algorithm> <chrono> <functional> <memory>
                            <optional> <string> <utility> <variant> <vector> <catch2/catch.hpp>)
  if(ZKLOCK_UNITY)
    zklock_unite(${suite}_tests)
  endif()
  target_link_libraries(${suite}_tests PRIVATE test_flags support)
  target_link_options(${suite}_tests PRIVATE $<$<BOOL:${ZKLOCK_LTO}>:-fno-lto>)
  if(TARGET zklock)
    add_dependencies(${suite}_tests zklock zklock-transport)
  endif()

  set(tests ${CMAKE_CURRENT_BINARY_DIR}/${suite}_tests.cmake)
  set(properties ${CMAKE_CURRENT_BINARY_DIR}/${suite}_properties.txt)
  set(by_file OFF)
  set(skip "SKIP_REGULAR_EXPRESSION [==[skipped: needs ]==]")
  if(suite STREQUAL unit AND (ZKLOCK_SANITIZE OR CMAKE_CROSSCOMPILING_EMULATOR))
    set(by_file ON)
    set(skip "")  # skipping would hide the failure of another case
  endif()
  # Only a hanging test needs a timeout: Java can take minutes to start on a busy machine.
  file(GENERATE OUTPUT ${properties}
       CONTENT "LABELS ${suite} TIMEOUT 900 ${skip} ENVIRONMENT [==[${environment}]==]")
  # Discovery follows the link: link again when the script changes.
  set_property(TARGET ${suite}_tests APPEND PROPERTY LINK_DEPENDS
               ${CMAKE_CURRENT_SOURCE_DIR}/cmake/DiscoverTests.cmake)
  add_custom_command(TARGET ${suite}_tests POST_BUILD
                     BYPRODUCTS ${tests}
                     COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${suite}_tests>
                             -D "EMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}" ${catch_definitions}
                             -D SUITE=${suite} -D PROPERTIES_FILE=${properties} -D OUTPUT=${tests}
                             -D BY_FILE=${by_file} -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/DiscoverTests.cmake
                     VERBATIM)
  # A suite that was not built counts as a failed test.
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${suite}_include.cmake
       "if(EXISTS [==[${tests}]==])
  include([==[${tests}]==])
else()
  add_test(${suite}:not-built ${suite}_tests-not-built)
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES
               ${CMAKE_CURRENT_BINARY_DIR}/${suite}_include.cmake)
endforeach()
