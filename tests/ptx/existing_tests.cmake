# Existing tests of GPUs, on the stand-in. The label `ptx` has those of CI; `ptx_long` has longer ones.

# tutti_on_stand_in(<test> LABEL label FILTER filter): runs a test of another folder with lazy loading. The default
# filter selects the kind `cuda` of a test that runs on several kinds of devices. Fails if there is no such test.
function(tutti_on_stand_in test)
  cmake_parse_arguments(RUN "" "LABEL;FILTER;NAME" "" ${ARGN})
  if(NOT RUN_FILTER)
    set(RUN_FILTER "*/cuda")
  endif()
  if(NOT RUN_NAME)
    set(RUN_NAME ${test})
  endif()
  get_property(command GLOBAL PROPERTY TUTTI_COMMAND_OF_${test})
  string(REGEX REPLACE "\\..*" "" folder ${test})
  if(NOT command AND NOT TUTTI_TEST_FOLDERS AND (TUTTI_HAS_NCCL OR NOT folder STREQUAL nccl))
    message(FATAL_ERROR "tutti_on_stand_in: there is no test ${test}")
  endif()
  tutti_test_again(${RUN_NAME} OF ${test} LABELS ${RUN_LABEL} ARGUMENTS "--gtest_filter=${RUN_FILTER}"
                   ENVIRONMENT CUDA_MODULE_LOADING=LAZY)
  if(RUN_LABEL STREQUAL ptx_long)
    tutti_test_properties(${RUN_NAME} PROPERTIES TIMEOUT 10000)
  endif()
endfunction()

foreach(test device device_graphs device_reports)
  tutti_on_stand_in(executor.${test} LABEL ptx)
endforeach()
foreach(test driver thread_context)
  tutti_on_stand_in(executor.${test} LABEL ptx FILTER *)
endforeach()
foreach(test messages streams failures processes rounding late)
  tutti_on_stand_in(device.${test} LABEL ptx)
endforeach()
tutti_on_stand_in(device.collectives LABEL ptx FILTER */cuda-*MoreShapesThanCached*:*UseLittleMemory*)  # Thousands of calls.
tutti_on_stand_in(executor.cuda_fold LABEL ptx FILTER */float32:*/bfloat16:*/float8_e4m3)
tutti_on_stand_in(executor.cuda_interpreter LABEL ptx
                  FILTER *WithThreeRanks*/all_reduce_ring:*WithThreeRanks*/all_reduce_two_shot_*ed)

# All cases.
foreach(test executor.cuda_fold executor.cuda_interpreter compression.cuda_codec)
  tutti_on_stand_in(${test} NAME ${test}_all LABEL ptx_long FILTER *)
endforeach()
tutti_on_stand_in(device.collectives NAME device.collectives_all LABEL ptx_long)
foreach(test compression sweep remote_access windows autotuning autotuning_processes)
  tutti_on_stand_in(device.${test} LABEL ptx_long)
endforeach()

# Clients of NCCL pass pageable host memory. A test that sends and receives in one buffer has a data race, which is a fault.
tutti_on_stand_in(nccl.cuda_collectives LABEL ptx FILTER -*SendAndRecvWithOneBuffer*)
foreach(test call_config revoke shrink suspend)
  tutti_on_stand_in(nccl.cuda_${test} LABEL ptx FILTER *)
endforeach()
tutti_on_stand_in(nccl.cuda_compression LABEL ptx_long FILTER *)
foreach(test collectives call_config shrink revoke suspend compression)
  tutti_test_environment(nccl.cuda_${test} TUTTI_PTX_PAGEABLE=1)
endforeach()

# Eight ranks on one device, and on eight.
foreach(devices 1 8)
  set(name perf.all_reduce_on_${devices}_devices)
  tutti_add_test(NAME ${name} LABELS ptx
                 COMMAND $<TARGET_FILE:all_reduce_perf> --memory cuda -g 8 -b 8 -e 4K -f 8 -n 1 -w 0 -c 1)
  tutti_test_environment(${name} TUTTI_PTX_DEVICES=${devices})
  tutti_test_properties(${name} PROPERTIES PASS_REGULAR_EXPRESSION "Out of bounds values : 0 OK")
endforeach()
add_dependencies(tutti_on_ptx all_reduce_perf)
