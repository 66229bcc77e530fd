# One target per module. A module includes only modules on lower levels, so it links only those: tutti_module(plan LINKS tutti_base).
# Every .cc file of the folder belongs to the module; *_avx2.cc and *_avx512.cc get flags of their own, and, like
# *_x86.cc, are for x86 only; *_portable.cc is for all others.
option(TUTTI_UNITY "Compile several files of a module at once, which takes half the time" OFF)
function(tutti_module name)
  cmake_parse_arguments(MODULE "" "FOLDER" "LINKS" ${ARGN})
  if(NOT MODULE_FOLDER)
    set(MODULE_FOLDER ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${MODULE_FOLDER}/*.cc)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(FILTER sources EXCLUDE REGEX "_portable\\.cc$")
  else()
    list(FILTER sources EXCLUDE REGEX "_(avx2|avx512|x86)\\.cc$")
  endif()
  foreach(source ${sources})
    if(source MATCHES "_avx2\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;-mbmi2")
    elseif(source MATCHES "_avx512\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx2;-mfma;-mf16c;-mbmi2;-mprefer-vector-width=512")
    endif()
  endforeach()
  add_library(tutti_${name} STATIC ${sources})
  target_include_directories(tutti_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(tutti_${name} PUBLIC ${MODULE_LINKS} PRIVATE tutti_flags)
  if(TUTTI_UNITY)
    set_target_properties(tutti_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 9)
  endif()
  if(TUTTI_SANITIZE)
    set_target_properties(tutti_${name} PROPERTIES EXCLUDE_FROM_ALL ON)  # Tests build the libraries that they link.
  endif()
endfunction()

# Tests of these folders start ranks that want the cores for themselves, so ctest runs them one at a time. They are also
# where threads meet, so ThreadSanitizer sees these only.
set(TUTTI_TEST_FOLDERS_WITH_RANKS executor transports bootstrap communicator device api nccl)

# What a run on a GPU needs, and no more (tools/dev gpu): what runs tests with these labels, and what measures. Each test
# has one of them at most, so that it runs once: `cuda` those that need a GPU for all that they do, `device` those of
# tests/communicator/device and all others that meet one or its emulator, `perf` those of tests/perf.
add_custom_target(tutti_on_gpu)
set(TUTTI_LABELS_ON_GPU cuda perf device)
# Whoever links one of these meets a GPU, or its emulator.
set(TUTTI_KNOWS_DEVICES tutti_test_device tutti_cuda_engine tutti_current_host_device tutti_nccl_on_emulator tutti_perf_site
    CUDA::cudart_static)

# Makes a test part of that, if it has one of the labels; and sees to it that none is forgotten or runs twice.
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

# One test program per file tests/<module>/<name>_test.cc (or .c), run by ctest as <module>.<name>.
#   LINKS targets   LABELS labels: `slow` keeps a test out of sanitizer builds, `threads` brings it into tsan's. `alone` is
#   for tests of folders with ranks that start neither threads, processes nor ranks: not in tsan's, and beside others.
function(tutti_test file)
  cmake_parse_arguments(TEST "" "" "LINKS;LABELS" ${ARGN})
  get_filename_component(stem ${file} NAME_WE)
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  if(TUTTI_SANITIZE AND "slow" IN_LIST TEST_LABELS)
    return()
  endif()
  if(TUTTI_SANITIZE STREQUAL "thread" AND NOT "threads" IN_LIST TEST_LABELS
     AND ("alone" IN_LIST TEST_LABELS OR NOT folder IN_LIST TUTTI_TEST_FOLDERS_WITH_RANKS))
    return()
  endif()
  string(REPLACE "_test" "" short ${stem})
  set(target ${folder}_${stem})
  add_executable(${target} ${file})
  target_link_libraries(${target} PRIVATE ${TEST_LINKS} tutti_flags GTest::gtest GTest::gtest_main)
  target_compile_options(${target} PRIVATE ${TUTTI_TEST_FLAGS})
  if(TARGET tutti_gtest_parsed)
    target_precompile_headers(${target} REUSE_FROM tutti_gtest_parsed)
  endif()
  tutti_add_test(NAME ${folder}.${short} LABELS ${TEST_LABELS} ${folder} COMMAND ${target})
  if(folder IN_LIST TUTTI_TEST_FOLDERS_WITH_RANKS AND NOT "alone" IN_LIST TEST_LABELS)
    set_tests_properties(${TUTTI_TEST_PREFIX}${folder}.${short} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# add_test with what all our tests share. The prefix tells apart the tests of several builds in one run of ctest.
set(TUTTI_TEST_PREFIX "" CACHE STRING "Put before the name of every test: asan/")
set(TUTTI_TEST_SECONDS 300 CACHE STRING "A test that takes longer has failed")
function(tutti_add_test)
  cmake_parse_arguments(TEST "" "NAME" "LABELS;COMMAND" ${ARGN})
  set(name ${TUTTI_TEST_PREFIX}${TEST_NAME})
  add_test(NAME ${name} COMMAND ${TEST_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TUTTI_TEST_SECONDS} SKIP_RETURN_CODE 77 LABELS "${TEST_LABELS}")
  if(TUTTI_SANITIZE STREQUAL "thread")  # UCX's hooks in libc run where ThreadSanitizer knows no thread any more.
    set_tests_properties(${name} PROPERTIES ENVIRONMENT_MODIFICATION "UCX_MEM_MMAP_HOOK_MODE=set:none")
  endif()
  list(GET TEST_COMMAND 0 program)
  list(JOIN TEST_LABELS "|" labels)
  tutti_note_on_gpu(${name} "${labels}" "${program}")
endfunction()
