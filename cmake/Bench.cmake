# The programs that scripts/bench measures with, and those it compares with. They are built with
# everything else, so that they keep building, but only scripts/bench runs them.

foreach(tool IN ITEMS floor stamp stopwatch)
  add_executable(bench_${tool} tests/bench/${tool}.c)
  target_link_libraries(bench_${tool} PRIVATE zklock_flags)
endforeach()
target_link_libraries(bench_floor PRIVATE zookeeper::client)
# Static, because its start-up time is part of every hand-over measured.
if(NOT ZKLOCK_SANITIZE)
  target_link_options(bench_stamp PRIVATE -static)
endif()

add_library(bench_slow_fsync MODULE tests/bench/slow_fsync.c)
target_link_libraries(bench_slow_fsync PRIVATE zklock_flags)

add_executable(bench_crowd tests/bench/crowd.cc)
target_include_directories(bench_crowd PRIVATE tests)
target_link_libraries(bench_crowd PRIVATE zklock_flags zklock_core)
target_link_options(bench_crowd PRIVATE $<$<BOOL:${ZKLOCK_LTO}>:-fno-lto>)
