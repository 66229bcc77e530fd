# How tests are built and run. Each file tests/<module>/<name>_test.cc is a test <module>.<name> of ctest. Test programs
# hold several files each, and compile them as one unit, which takes a third of the time.

# Tests in these folders start ranks as threads or processes. The build with ThreadSanitizer has no others. Their ranks mostly
# wait for each other, so several tests run at the same time; tests that compare times have the property RUN_SERIAL.
set(TUTTI_TEST_FOLDERS_WITH_RANKS executor transports bootstrap messages communicator device api nccl)

set(TUTTI_TEST_FOLDERS "" CACHE STRING "Folders below tests/ to build; empty means all. Others, the tools and perf are left out")
set(TUTTI_TEST_PREFIX "" CACHE STRING "Put before the name of each test, to make names unique among builds: asan/")
set(TUTTI_TEST_SECONDS 300 CACHE STRING "Timeout of a test")

# The target of `tools/dev gpu`: the programs of tests with these labels, and the perf tools. A test has at most one of
# these labels, so that it runs once: `cuda` for tests that need a GPU, `device` for tests that use a GPU or the GPU
# emulator, `perf` for tests/perf.
add_custom_target(tutti_on_gpu)
set(TUTTI_LABELS_ON_GPU cuda perf device)
# Targets that only tests of a GPU or of the GPU emulator link.
set(TUTTI_KNOWS_DEVICES tutti_test_device tutti_cuda_engine tutti_current_host_device tutti_nccl_on_emulator tutti_perf_backend
    CUDA::cudart_static)

# Makes tutti_on_gpu build the test's program if the test has one of TUTTI_LABELS_ON_GPU. Fails if it has several of them, or
# has none and links one of TUTTI_KNOWS_DEVICES.
function(tutti_note_on_gpu name labels program)
  set(on_gpu ${TUTTI_LABELS_ON_GPU})
  list(FILTER on_gpu INCLUDE REGEX "^(none|${labels})$")
  list(LENGTH on_gpu count)
  if(count GREATER 1)
    message(FATAL_ERROR "${name}: tools/dev gpu would run it twice: keep one of its labels ${on_gpu}")
  endif()
  if(NOT TARGET ${program})
    return()
  endif()
  if(TUTTI_PTX)
    add_dependencies(tutti_on_ptx ${program})
    return()
  endif()
  if(count EQUAL 1)
    add_dependencies(tutti_on_gpu ${program})
    return()
  endif()
  get_target_property(links ${program} LINK_LIBRARIES)
  foreach(link ${links})
    if(link IN_LIST TUTTI_KNOWS_DEVICES)
      message(FATAL_ERROR "${name}: it links ${link}, but tools/dev gpu would not run it: give it LABELS device")
    endif()
  endforeach()
endfunction()

# The target of the build preset `ptx`: the programs of its tests.
add_custom_target(tutti_on_ptx)

# tutti_tests(<program> FILES... LINKS targets LABELS labels): one program of several files *_test.cc, one test of ctest
# for each file. Names in the files' anonymous namespaces must be unique within a program.
#   LABELS: `slow` and `no_sanitizers` keep tests out of sanitizer builds, which do not support, for example, forks of
#   processes with several threads. `threads` adds tests of other folders to ThreadSanitizer's build.
#   `downloads` is for tests that download much: `tools/dev test` leaves them out, `tools/dev test --all` runs them.
#   `no_threads` is for tests in folders with ranks that start neither threads, processes nor ranks: ThreadSanitizer's build
#   does not have them.
function(tutti_tests program)
  cmake_parse_arguments(TEST "" "" "LINKS;LABELS" ${ARGN})
  set(files ${TEST_UNPARSED_ARGUMENTS})
  set_property(DIRECTORY APPEND PROPERTY TUTTI_TEST_FILES ${files})
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  tutti_has_tests(built ${folder} ${TEST_LABELS})
  if(NOT built)
    return()
  endif()
  list(LENGTH files count)
  set(sources ${files})
  if(count GREATER 1)
    tutti_unite(sources ${program} ${files})
  endif()
  add_executable(${program} ${sources})
  target_link_libraries(${program} PRIVATE ${TEST_LINKS} tutti_flags tutti_test_main)
  target_compile_options(${program} PRIVATE ${TUTTI_TEST_FLAGS})
  foreach(file ${files})
    string(REPLACE "_test.cc" "" test ${file})
    set(command ${program})
    if(count GREATER 1)
      list(APPEND command --file=${file})
    endif()
    tutti_add_test(NAME ${folder}.${test} LABELS ${TEST_LABELS} ${folder} COMMAND ${command})
    set_property(GLOBAL PROPERTY TUTTI_COMMAND_OF_${folder}.${test} ${command})
  endforeach()
endfunction()

# tutti_test(<file> LINKS targets LABELS labels): a program of one file; foo_test.cc in tests/api becomes api_foo_test.
function(tutti_test file)
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  string(REPLACE ".cc" "" stem ${file})
  tutti_tests(${folder}_${stem} ${file} ${ARGN})
endfunction()

# Adds a program of one file for each file *_test.cc of the folder that no previous call has named.
function(tutti_other_tests)
  get_property(named DIRECTORY PROPERTY TUTTI_TEST_FILES)
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *_test.cc)
  list(REMOVE_ITEM files ${named})
  foreach(file ${files})
    tutti_test(${file} ${ARGN})
  endforeach()
endfunction()

# Sets <variable> to whether this build has tests of a folder with these labels.
function(tutti_has_tests variable folder)
  set(${variable} ON PARENT_SCOPE)
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" top "${path}")
  if(TUTTI_TEST_FOLDERS AND NOT top IN_LIST TUTTI_TEST_FOLDERS)
    set(${variable} OFF PARENT_SCOPE)
  elseif(TUTTI_SANITIZE AND ("slow" IN_LIST ARGN OR "no_sanitizers" IN_LIST ARGN))
    set(${variable} OFF PARENT_SCOPE)
  elseif(TUTTI_SANITIZE STREQUAL "thread" AND NOT "threads" IN_LIST ARGN
         AND ("no_threads" IN_LIST ARGN OR NOT folder IN_LIST TUTTI_TEST_FOLDERS_WITH_RANKS))
    set(${variable} OFF PARENT_SCOPE)
  endif()
endfunction()

# tutti_add_test(NAME name LABELS labels COMMAND command): add_test with the properties that all tests have. The build on the
# stand-in for the CUDA runtime has only tests with the label `ptx` or `ptx_long`.
function(tutti_add_test)
  cmake_parse_arguments(TEST "" "NAME" "LABELS;COMMAND" ${ARGN})
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" top "${path}")
  if(TUTTI_TEST_FOLDERS AND NOT top IN_LIST TUTTI_TEST_FOLDERS)
    return()
  endif()
  if(TUTTI_SANITIZE AND ("slow" IN_LIST TEST_LABELS OR "no_sanitizers" IN_LIST TEST_LABELS))
    return()
  endif()
  if(TUTTI_PTX AND NOT "ptx" IN_LIST TEST_LABELS AND NOT "ptx_long" IN_LIST TEST_LABELS)
    return()
  endif()
  set(name ${TUTTI_TEST_PREFIX}${TEST_NAME})
  add_test(NAME ${name} COMMAND ${TEST_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TUTTI_TEST_SECONDS} SKIP_RETURN_CODE 77 LABELS "${TEST_LABELS}")
  if(TUTTI_SANITIZE STREQUAL "thread")  # ThreadSanitizer crashes in UCX's hooks of libc at the end of a thread.
    set_tests_properties(${name} PROPERTIES ENVIRONMENT_MODIFICATION "UCX_MEM_MMAP_HOOK_MODE=set:none")
  endif()
  if(TUTTI_HAS_CUDA AND EXISTS /dev/nvidia0 AND TEST_LABELS MATCHES "cuda|device|perf")
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK gpu)  # Kernels of two tests would compete for the GPU.
  endif()
  list(GET TEST_COMMAND 0 program)
  list(JOIN TEST_LABELS "|" labels)
  tutti_note_on_gpu(${name} "${labels}" "${program}")
endfunction()

# tutti_test_again(<name> OF <test> LABELS labels ARGUMENTS arguments ENVIRONMENT variables): adds another run of a test, with
# other arguments or another environment.
function(tutti_test_again name)
  cmake_parse_arguments(TEST "" "OF" "LABELS;ARGUMENTS;ENVIRONMENT" ${ARGN})
  get_property(command GLOBAL PROPERTY TUTTI_COMMAND_OF_${TEST_OF})
  if(command)
    tutti_add_test(NAME ${name} LABELS ${TEST_LABELS} COMMAND ${command} ${TEST_ARGUMENTS})
    tutti_test_environment(${name} ${TEST_ENVIRONMENT})
  endif()
endfunction()

# set_tests_properties for names without the prefix. Skips tests that this build leaves out.
function(tutti_test_properties)
  list(FIND ARGN PROPERTIES at)
  list(SUBLIST ARGN 0 ${at} names)
  list(SUBLIST ARGN ${at} -1 properties)
  foreach(name ${names})
    if(TEST ${TUTTI_TEST_PREFIX}${name})
      set_tests_properties(${TUTTI_TEST_PREFIX}${name} ${properties})
    elseif(NOT TUTTI_SANITIZE AND NOT TUTTI_TEST_FOLDERS AND NOT TUTTI_PTX)
      message(FATAL_ERROR "tutti_test_properties: there is no test ${name}")
    endif()
  endforeach()
endfunction()

# tutti_label_tests(<label> names...): adds a label to tests.
function(tutti_label_tests label)
  foreach(name ${ARGN})
    if(TEST ${TUTTI_TEST_PREFIX}${name})
      set_property(TEST ${TUTTI_TEST_PREFIX}${name} APPEND PROPERTY LABELS ${label})
    elseif(NOT TUTTI_SANITIZE AND NOT TUTTI_TEST_FOLDERS AND NOT TUTTI_PTX)
      message(FATAL_ERROR "tutti_label_tests: there is no test ${name}")
    endif()
  endforeach()
endfunction()

# tutti_test_environment(<name> variable=value...): adds to a test's environment.
function(tutti_test_environment name)
  if(TEST ${TUTTI_TEST_PREFIX}${name})
    set_property(TEST ${TUTTI_TEST_PREFIX}${name} APPEND PROPERTY ENVIRONMENT ${ARGN})
  endif()
endfunction()
