# Run behind the link of a test program: writes one add_test() for each of its cases to OUTPUT.
# Catch2's own catch_discover_tests() takes a name apart at each ';', and a list as a property too.
#
#   cmake -D PROGRAM=... -D SUITE=... -D PROPERTIES_FILE=... -D OUTPUT=... -P DiscoverTests.cmake

# The status is the number of tests.
execute_process(COMMAND ${PROGRAM} --list-test-names-only OUTPUT_VARIABLE names
                RESULT_VARIABLE count)
if(NOT count MATCHES "^[0-9]+$" OR count EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} does not list its tests: ${count}")
endif()
file(READ ${PROPERTIES_FILE} properties)

string(ASCII 1 semicolon)
string(ASCII 2 opening)
string(ASCII 3 closing)
string(REPLACE ";" ${semicolon} names "${names}")
# An unbalanced bracket in a list's element would swallow the next.
string(REPLACE "[" ${opening} names "${names}")
string(REPLACE "]" ${closing} names "${names}")
string(REPLACE "\n" ";" names "${names}")
set(script "")
foreach(name IN LISTS names)
  if(name STREQUAL "")
    continue()
  endif()
  string(REPLACE ${semicolon} ";" name "${name}")
  # What Catch2 reads as more than a name.
  string(REPLACE "\\" "\\\\" filter "${name}")
  string(REPLACE "," "\\," filter "${filter}")
  string(REPLACE ${opening} "\\[" filter "${filter}")
  string(REPLACE ${closing} "\\]" filter "${filter}")
  string(REPLACE ${opening} "[" name "${name}")
  string(REPLACE ${closing} "]" name "${name}")
  # NoTests: a name that does not come through to the program fails instead of passing unrun.
  string(APPEND script "add_test([==[${SUITE}:${name}]==] [==[${PROGRAM}]==] [==[${filter}]==]"
         " -w NoTests)\n"
         "set_tests_properties([==[${SUITE}:${name}]==] PROPERTIES ${properties})\n")
endforeach()
file(WRITE ${OUTPUT} "${script}")
