# One ctest test per suite of a GoogleTest program: a process per test would spend a second of five on starting. Included by
# ctest, not by CMake, so that it lists what the program has now; the list is kept beside the program until that changes.
#
# Input: PROGRAM, LABEL; LONG: suites with the label `long` as well, which ./test leaves to ./test --all; SUITE_ENVIRONMENT.

cmake_policy(VERSION 3.25)
set(list ${PROGRAM}.suites)
if(NOT EXISTS ${PROGRAM})
  add_test(${PROGRAM}.is_not_built ${PROGRAM})
  return()
endif()
if(${PROGRAM} IS_NEWER_THAN ${list})
  execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: ${code}")
  endif()
  string(REGEX MATCHALL "[A-Za-z0-9_/]+\\.( +#[^\n]*)?\n  " suites "\n${listed}")
  list(TRANSFORM suites REPLACE "\\.( +#[^\n]*)?\n  " "")
  list(REMOVE_DUPLICATES suites)
  file(WRITE ${list}.new "${suites}") # renamed, since another ctest may read the list now
  file(RENAME ${list}.new ${list})
endif()
file(READ ${list} suites)
foreach(suite IN LISTS suites)
  set(labels ${LABEL})
  if(suite IN_LIST LONG)
    list(APPEND labels long)
  endif()
  set(name "${LABEL}.${suite}")
  add_test("${name}" ${PROGRAM} "--gtest_filter=${suite}.*")
  set_tests_properties("${name}" PROPERTIES LABELS "${labels}" ENVIRONMENT "${SUITE_ENVIRONMENT}")
  if(LABEL STREQUAL demo) # each runs up to ten processes that keep time
    set_tests_properties("${name}" PROPERTIES RESOURCE_LOCK demo COST 300)
  endif()
endforeach()
