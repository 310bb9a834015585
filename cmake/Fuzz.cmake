# One libFuzzer program for each target: fuzz_NAME from tests/fuzz/NAME_fuzz.cc. Built by
# scripts/fuzz.

option(ZKLOCK_FUZZ "Build the fuzzers; needs Clang, and fuzzer-no-link in ZKLOCK_SANITIZE" OFF)
if(NOT ZKLOCK_FUZZ)
  return()
endif()
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT ZKLOCK_SANITIZE MATCHES "fuzzer-no-link")
  message(FATAL_ERROR "The fuzzers need Clang and its coverage: cmake --preset fuzz")
endif()

# The code that parses untrusted input, and its dependencies: anything else would only add to the build time.
file(GLOB fuzzed_sources CONFIGURE_DEPENDS src/base/*.cc src/protocol/*.cc)
list(APPEND fuzzed_sources
     src/transport/sasl_frames.cc
     src/zookeeper/server_answers.cc src/zookeeper/server_list.cc src/zookeeper/store.cc
     src/zookeeper/wire.cc src/zookeeper/connection.cc src/zookeeper/loopback.cc
     src/zookeeper/result.cc src/zookeeper/session.cc
     src/zookeeper/session_requests.cc
     src/lock/data/contender_data.cc src/lock/data/json_fields.cc src/lock/data/lock_children.cc
     src/lock/data/reserved.cc src/lock/data/run_history.cc
     src/lock/operations/server_operation.cc src/lock/survey/survey.cc src/lock/survey/survey_queue.cc
     src/cli/options/config.cc src/cli/options/found_file.cc src/cli/reports/report_progress.cc
     src/cli/reports/report_queue.cc src/cli/reports/report_reasons.cc src/cli/text/duration.cc
     src/cli/text/fmt.cc src/cli/text/history_view.cc src/cli/text/printable.cc
     src/cli/text/queue_view.cc src/cli/text/screen.cc src/cli/text/suggestion.cc
     src/cli/text/table.cc src/cli/views/history_text.cc src/cli/views/queue_dot.cc
     src/cli/views/queue_json.cc src/cli/views/queue_text.cc src/cli/views/wait_graph.cc)
add_library(fuzzed STATIC EXCLUDE_FROM_ALL ${fuzzed_sources}
            tests/fuzz/fuzz.cc tests/fuzz/text.cc)
target_include_directories(fuzzed PUBLIC src tests)
# AddressSanitizer does not detect an index beyond a view but within its buffer.
target_compile_definitions(fuzzed PUBLIC _GLIBCXX_ASSERTIONS)
target_link_libraries(fuzzed PUBLIC zklock_flags zklock_fmt nlohmann_json::nlohmann_json
                             zookeeper::client)
target_link_options(fuzzed INTERFACE -Wl,--wrap=recv,--wrap=getaddrinfo)

file(GLOB fuzzers CONFIGURE_DEPENDS tests/fuzz/*_fuzz.cc)
foreach(fuzzer IN LISTS fuzzers)
  cmake_path(GET fuzzer STEM name)
  string(REGEX REPLACE "_fuzz$" "" name ${name})
  add_executable(fuzz_${name} EXCLUDE_FROM_ALL ${fuzzer})
  target_link_libraries(fuzz_${name} PRIVATE fuzzed)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
endforeach()
