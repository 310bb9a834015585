# Runs after a test program is linked: writes one add_test() for each of its cases to OUTPUT. Cases tagged [slow],
# which take 20 s or more, are started first. Catch2's own catch_discover_tests() splits a name at each ';', and
# properties that are lists too.
#
#   cmake -D PROGRAM=... -D SUITE=... -D PROPERTIES_FILE=... -D OUTPUT=...
#         -D LIST_OPTIONS=... -D RUN_OPTIONS=... -D EMULATOR=... -D BY_FILE=... -P DiscoverTests.cmake
#
# The options differ between Catch2's versions. EMULATOR runs a program for another processor, or is empty.
# BY_FILE: a test comprises all cases of a source file, for a program that takes longer to start than to run one case.
# With an emulator, cases tagged [native] are left out: they trace a process, filter its system calls, lock memory, or
# look at things that are those of the emulator itself: names, handlers and signal numbers.

separate_arguments(list_options UNIX_COMMAND "${LIST_OPTIONS}")
# The exit status is the number of tests, or 0.
execute_process(COMMAND ${EMULATOR} ${PROGRAM} ${list_options} OUTPUT_VARIABLE names
                RESULT_VARIABLE count)
if(NOT count MATCHES "^[0-9]+$" OR names STREQUAL "")
  message(FATAL_ERROR "${PROGRAM} does not list its tests: ${count}")
endif()
execute_process(COMMAND ${EMULATOR} ${PROGRAM} ${list_options} "[slow]" OUTPUT_VARIABLE slow_names)
set(emulator "")
if(EMULATOR)
  string(REPLACE ";" "]==] [==[" emulator "[==[${EMULATOR}]==] ")
endif()
file(READ ${PROPERTIES_FILE} properties)

string(ASCII 1 semicolon)
string(ASCII 2 opening)
string(ASCII 3 closing)
string(REPLACE ";" ${semicolon} names "${names}")
# An unbalanced bracket in a list element would swallow the next element.
string(REPLACE "[" ${opening} names "${names}")
string(REPLACE "]" ${closing} names "${names}")
string(REPLACE "\n" ";" names "${names}")
set(script "")
if(BY_FILE)
  set(native "")
  if(EMULATOR)
    set(native "~[native]")
  endif()
  execute_process(COMMAND ${EMULATOR} ${PROGRAM} --filenames-as-tags --list-tags ${native} OUTPUT_VARIABLE tags)
  string(REGEX MATCHALL "#[^]]+" files "${tags}")
  if(NOT files)
    message(FATAL_ERROR "${PROGRAM} does not list its files: ${tags}")
  endif()
  foreach(file IN LISTS files)
    string(SUBSTRING ${file} 1 -1 name)
    string(APPEND script "add_test(${SUITE}:${name} ${emulator}[==[${PROGRAM}]==] --filenames-as-tags [==[[${file}]${native}]==]"
           " ${RUN_OPTIONS})\n"
           "set_tests_properties(${SUITE}:${name} PROPERTIES ${properties})\n")
  endforeach()
  set(names "")
endif()
foreach(name IN LISTS names)
  if(name STREQUAL "")
    continue()
  endif()
  # The longest tests start first; otherwise one of them would run alone at the end.
  set(cost "")
  string(FIND "\n${slow_names}" "\n${name}\n" is_slow)
  if(NOT is_slow EQUAL -1)
    set(cost " COST 1000")
  endif()
  string(REPLACE ${semicolon} ";" name "${name}")
  # Escape characters with a meaning in Catch2's filters.
  string(REPLACE "\\" "\\\\" filter "${name}")
  string(REPLACE "," "\\," filter "${filter}")
  string(REPLACE ${opening} "\\[" filter "${filter}")
  string(REPLACE ${closing} "\\]" filter "${filter}")
  # Escape leading dashes too: Catch2 would take the filter for an option.
  string(REGEX REPLACE "^-" "\\\\-" filter "${filter}")
  string(REPLACE ${opening} "[" name "${name}")
  string(REPLACE ${closing} "]" name "${name}")
  string(APPEND script "add_test([==[${SUITE}:${name}]==] ${emulator}[==[${PROGRAM}]==] [==[${filter}]==]"
         " ${RUN_OPTIONS})\n"
         "set_tests_properties([==[${SUITE}:${name}]==] PROPERTIES ${properties}${cost})\n")
endforeach()
file(WRITE ${OUTPUT} "${script}")
