# One target per room. A room includes only rooms on lower levels, so it links only those: tutti_room(plan LINKS tutti_base).
# Every .cc file of the folder belongs to the room; *_avx2.cc and *_avx512.cc get flags of their own, and, like
# *_x86.cc, are for x86 only; *_portable.cc is for all others.
function(tutti_room name)
  cmake_parse_arguments(ROOM "" "FOLDER" "LINKS" ${ARGN})
  if(NOT ROOM_FOLDER)
    set(ROOM_FOLDER ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${ROOM_FOLDER}/*.cc)
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
  target_link_libraries(tutti_${name} PUBLIC ${ROOM_LINKS} PRIVATE tutti_flags)
endfunction()

# Tests of these folders start ranks that want the cores for themselves, so ctest runs them one at a time. They are also
# where threads meet, so ThreadSanitizer sees these only.
set(TUTTI_TEST_FOLDERS_WITH_RANKS executor transports bootstrap communicator device api nccl)

# What a run on a GPU needs, and no more (tools/dev gpu): what runs tests with these labels, and what measures.
add_custom_target(tutti_on_gpu)
set(TUTTI_LABELS_ON_GPU cuda device perf)

# One test program per file tests/<room>/<name>_test.cc (or .c), run by ctest as <room>.<name>.
#   LINKS targets   LABELS labels: `slow` keeps a test out of sanitizer builds, `threads` brings it into tsan's.
function(tutti_test file)
  cmake_parse_arguments(TEST "" "" "LINKS;LABELS" ${ARGN})
  get_filename_component(stem ${file} NAME_WE)
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  if(TUTTI_SANITIZE AND "slow" IN_LIST TEST_LABELS)
    return()
  endif()
  if(TUTTI_SANITIZE STREQUAL "thread" AND NOT "threads" IN_LIST TEST_LABELS
     AND NOT folder IN_LIST TUTTI_TEST_FOLDERS_WITH_RANKS)
    return()
  endif()
  string(REPLACE "_test" "" short ${stem})
  set(target ${folder}_${stem})
  add_executable(${target} ${file})
  target_link_libraries(${target} PRIVATE ${TEST_LINKS} tutti_flags GTest::gtest GTest::gtest_main)
  tutti_add_test(NAME ${folder}.${short} LABELS ${TEST_LABELS} ${folder} COMMAND ${target})
  foreach(label ${TEST_LABELS} ${folder})
    if(label IN_LIST TUTTI_LABELS_ON_GPU)
      add_dependencies(tutti_on_gpu ${target})
    endif()
  endforeach()
  if(folder IN_LIST TUTTI_TEST_FOLDERS_WITH_RANKS)
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
endfunction()
