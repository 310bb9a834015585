# The programs that scripts/torture needs besides zklock: the command that its contenders run, and zklocks that break
# a promise on purpose, which it must detect. The driver needs only Python's standard library.

add_executable(torture_recorder tests/faults/recorder.c)
target_link_libraries(torture_recorder PRIVATE zklock_flags)

# zklock_mutant_NAME: zklock with tests/mutations/NAME.cc, whose functions the linker puts in place of
# some of the library's (ld(1), --wrap). A function that no longer exists is a link error. Not with
# link-time optimisation, which could inline the functions that are to be replaced.
set(no_lease_wraps _ZNK6zklock8protocol5Lease3EndEv)
set(release_first_wraps _ZN6zklock8commands15SessionForGuard3SetERKNS_9zookeeper7SessionE
    _ZN6zklock7process10Supervisor7ForwardEi)
foreach(mutation IN ITEMS no_lease release_first)
  add_executable(zklock_mutant_${mutation} src/main.cc tests/mutations/${mutation}.cc)
  target_link_libraries(zklock_mutant_${mutation} PRIVATE zklock_flags zklock_core)
  list(TRANSFORM ${mutation}_wraps PREPEND -Wl,--wrap=)
  target_link_options(zklock_mutant_${mutation} PRIVATE ${${mutation}_wraps}
                      $<$<BOOL:${ZKLOCK_LTO}>:-fno-lto>)
endforeach()

find_program(ZKLOCK_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(NOT ZKLOCK_PYTHON)
  zklock_need(python3 python3)
endif()
add_test(NAME faults:checker
         COMMAND ${ZKLOCK_PYTHON} -B -m unittest discover -s tests/faults -p "*_test.py"
         WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
set_tests_properties(faults:checker PROPERTIES LABELS faults ENVIRONMENT
                     ZKLOCK_RECORDER=$<TARGET_FILE:torture_recorder>)

# The program that scripts/compare needs besides zklock.
add_executable(compare_job tests/compare/job.c)
target_link_libraries(compare_job PRIVATE zklock_flags)
add_test(NAME faults:compare
         COMMAND ${ZKLOCK_PYTHON} -B -m unittest discover -s tests/compare -p "*_test.py"
         WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
set_tests_properties(faults:compare PROPERTIES LABELS faults ENVIRONMENT
                     ZKLOCK_COMPARE_JOB=$<TARGET_FILE:compare_job>)
