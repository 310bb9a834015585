# What scripts/torture needs besides zklock: the command that its contenders run, and zklocks with a
# promise broken on purpose, which it must find out. The driver is Python's standard library only.

add_executable(torture_recorder tests/faults/recorder.c)
target_link_libraries(torture_recorder PRIVATE zklock_flags)

# zklock_mutant_NAME: zklock with ZKLOCK_MUTATION_NAME (src/base/mutation.h). Only the sources that
# know it are compiled again; the linker takes the library's for the others.
foreach(mutation IN ITEMS no_lease release_first)
  string(TOUPPER ${mutation} name)
  add_executable(zklock_mutant_${mutation} src/main.cc src/commands/locked_run.cc src/lock/hold.cc)
  target_compile_definitions(zklock_mutant_${mutation} PRIVATE ZKLOCK_MUTATION_${name})
  target_link_libraries(zklock_mutant_${mutation} PRIVATE zklock_flags zklock_core)
  target_link_options(zklock_mutant_${mutation} PRIVATE $<$<BOOL:${ZKLOCK_LTO}>:-fno-lto>)
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
