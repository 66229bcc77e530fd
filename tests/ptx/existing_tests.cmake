# Existing tests of GPUs, on the stand-in. The label `ptx` has those of CI; `ptx_long` has longer ones.

# tutti_on_stand_in(<test> LABEL label FILTER filter SAMPLE n ENVIRONMENT settings): runs a test of another folder with lazy
# loading. The default filter selects the kind `cuda` of a test that runs on several kinds of devices. With SAMPLE, loops over
# cases run one of n. Fails if there is no such test.
function(tutti_on_stand_in test)
  cmake_parse_arguments(RUN "" "LABEL;FILTER;NAME;SAMPLE" "ENVIRONMENT" ${ARGN})
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
                   ENVIRONMENT CUDA_MODULE_LOADING=LAZY
                   ${RUN_ENVIRONMENT})
  if(RUN_SAMPLE)
    tutti_test_environment(${RUN_NAME} TEST_SAMPLE=${RUN_SAMPLE})
  endif()
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
                  FILTER *WithThreeRanks*/all_reduce_ring:*WithThreeRanks*/all_reduce_two_shot_mapped)
tutti_on_stand_in(executor.cuda_interpreter NAME executor.cuda_staging LABEL ptx SAMPLE 3 FILTER *WithThreeRanks*/*_staged)
tutti_on_stand_in(executor.cuda_interpreter NAME executor.cuda_small LABEL ptx SAMPLE 3
                  FILTER *WithThreeRanks*/all_reduce_one_shot:*WithThreeRanks*/all_reduce_two_shot)

# All kinds of cases; docs/design/ptx-machine.md lists what they sample.
foreach(test executor.cuda_fold compression.cuda_codec)
  tutti_on_stand_in(${test} NAME ${test}_all LABEL ptx_long FILTER *)
endforeach()
tutti_on_stand_in(executor.cuda_interpreter NAME executor.cuda_interpreter_all LABEL ptx_long FILTER * SAMPLE 11)
tutti_on_stand_in(device.collectives NAME device.collectives_all LABEL ptx_long)
tutti_on_stand_in(device.sweep LABEL ptx_long SAMPLE 3)
tutti_on_stand_in(executor.cuda_sweep LABEL ptx_long FILTER * SAMPLE 23)
tutti_on_stand_in(device.network LABEL ptx_long SAMPLE 5)
foreach(test compression compression_hosts shrink advice remote_access windows autotuning autotuning_processes)
  tutti_on_stand_in(device.${test} LABEL ptx_long)
endforeach()

# The same kernels, compiled for other architectures, on devices of these. Small and compressed messages.
foreach(architecture ${architectures})
  if(architecture EQUAL 90)
    continue()
  endif()
  set(of_architecture TUTTI_PTX_CAPABILITY=${architecture} TUTTI_PTX_PROGRAMS=${CMAKE_CURRENT_BINARY_DIR}/ptx_for_${architecture}.txt)
  tutti_on_stand_in(executor.cuda_interpreter NAME executor.cuda_small_on_${architecture} LABEL ptx SAMPLE 9
                    FILTER *WithThreeRanks*/all_reduce_one_shot:*WithThreeRanks*/all_reduce_two_shot ENVIRONMENT ${of_architecture})
  foreach(test messages rounding)
    tutti_on_stand_in(device.${test} NAME device.${test}_on_${architecture} LABEL ptx_long ENVIRONMENT ${of_architecture})
  endforeach()
endforeach()

# Kernels in time slices, as without MPS; peer access between none, and between some, of four devices.
tutti_on_stand_in(device.processes NAME device.processes_without_mps LABEL ptx ENVIRONMENT TUTTI_PTX_MPS=0)
foreach(files unsupported refused)
  tutti_on_stand_in(device.processes NAME device.processes_with_files_${files} LABEL ptx FILTER *ComputesCorrectResults/cuda
                    ENVIRONMENT TUTTI_PTX_FILES=${files})
endforeach()
foreach(links pcie mixed)
  set(four_devices TUTTI_PTX_DEVICES=4 TUTTI_PTX_LINKS=${links})
  foreach(test messages failures)
    tutti_on_stand_in(device.${test} NAME device.${test}_${links} LABEL ptx ENVIRONMENT ${four_devices})
  endforeach()
  foreach(test collectives streams)
    tutti_on_stand_in(device.${test} NAME device.${test}_${links} LABEL ptx_long ENVIRONMENT ${four_devices})
  endforeach()
endforeach()

# Ranks that communicate over TCP, and by a network plugin. The filters leave out what the tests of the emulator leave out.
set(within_host *WithEachProtocol*:*DeviceFailures.NameMissingRank*)
foreach(test messages streams failures shrink)
  tutti_on_stand_in(device.${test} NAME device.${test}_over_tcp LABEL ptx FILTER */cuda-${within_host}
                    ENVIRONMENT TUTTI_TRANSPORT=tcp)
endforeach()
foreach(test collectives late processes compression)
  tutti_on_stand_in(device.${test} NAME device.${test}_over_tcp LABEL ptx_long FILTER */cuda-${within_host}
                    ENVIRONMENT TUTTI_TRANSPORT=tcp)
endforeach()
tutti_on_stand_in(device.network NAME device.network_over_net_plugin LABEL ptx_long SAMPLE 5
                  FILTER */cuda-*ConnectsHosts*:*OrderWrites:*UsesNoCpu_BetweenCalls*:*RingsFollowLinksOfGpus*
                  ENVIRONMENT TUTTI_TRANSPORT=net_plugin TUTTI_NET_PLUGIN=${TUTTI_NET_STAND_IN})

# The API, with pageable host memory.
foreach(test device device_requests device_rounding)
  tutti_on_stand_in(api.cuda_${test} LABEL ptx FILTER * ENVIRONMENT TUTTI_PTX_PAGEABLE=1)
endforeach()
tutti_on_stand_in(api.cuda_device_memory LABEL ptx FILTER *
                  ENVIRONMENT TUTTI_PTX_MEMORY_MIB=1024)  # Tests exhaust it.

# Clients of NCCL pass pageable host memory. A test that sends and receives in one buffer has a data race, which is a fault.
tutti_on_stand_in(nccl.cuda_collectives LABEL ptx FILTER -*SendAndRecvWithOneBuffer*)
foreach(test call_config revoke shrink suspend device device_lifecycle device_no_timeouts device_non_blocking device_processes)
  tutti_on_stand_in(nccl.cuda_${test} LABEL ptx FILTER *)
endforeach()
tutti_on_stand_in(nccl.cuda_compression LABEL ptx_long FILTER *)
foreach(test device device_lifecycle shrink)
  tutti_on_stand_in(nccl.cuda_${test} NAME nccl.cuda_${test}_over_tcp LABEL ptx FILTER -*Windows* ENVIRONMENT TUTTI_TRANSPORT=tcp)
endforeach()
tutti_on_stand_in(nccl.cuda_collectives NAME nccl.cuda_collectives_over_tcp LABEL ptx_long
                  FILTER -*Windows*:*SendAndRecvWithOneBuffer* ENVIRONMENT TUTTI_TRANSPORT=tcp)
foreach(test collectives call_config shrink revoke suspend device device_lifecycle device_no_timeouts device_non_blocking
             device_processes compression collectives_over_tcp device_over_tcp device_lifecycle_over_tcp shrink_over_tcp)
  tutti_test_environment(nccl.cuda_${test} TUTTI_PTX_PAGEABLE=1 CUDA_DEVICE_MAX_CONNECTIONS=8)
endforeach()

# Eight ranks on one device, and on eight.
foreach(devices 1 8)
  set(name perf.all_reduce_on_${devices}_devices)
  tutti_add_test(NAME ${name} LABELS ptx
                 COMMAND $<TARGET_FILE:all_reduce_perf> --memory cuda -g 8 -b 8 -e 4K -f 8 -n 1 -w 0 -c 1)
  tutti_test_environment(${name} TUTTI_PTX_DEVICES=${devices})
  tutti_test_properties(${name} PROPERTIES PASS_REGULAR_EXPRESSION "Out of bounds values : 0 OK")
endforeach()
# Each size may need memory and kernels that the one before did not, while threads that are ahead already wait in kernels.
tutti_add_test(NAME perf.all_reduce_of_threads LABELS ptx
               COMMAND $<TARGET_FILE:all_reduce_perf> --memory cuda -t 8 -g 1 -b 8 -e 256K -f 32 -n 1 -w 0 -c 1)
tutti_test_environment(perf.all_reduce_of_threads TUTTI_PTX_DEVICES=8 CUDA_MODULE_LOADING=)
tutti_test_properties(perf.all_reduce_of_threads PROPERTIES PASS_REGULAR_EXPRESSION
                      "Out of bounds values : 0 OK.*\\(LL\\).*\\(Simple\\)")
tutti_add_test(NAME perf.all_reduce_staged LABELS ptx
               COMMAND $<TARGET_FILE:all_reduce_perf> --memory cuda --ranks 3 --algorithm two_shot_staged -b 1K -e 64K -f 8 -n 1 -w 0
                       -c 1)
tutti_test_properties(perf.all_reduce_staged PROPERTIES PASS_REGULAR_EXPRESSION
                      "Out of bounds values : 0 OK.*two_shot_staged 1024 to 65536 B")
# Processes on emulated hosts, whose switches add. The devices of all hosts differ, as those of real hosts do.
foreach(case "2x2 host_staged" "3x2 host_staged" "3x2 tree_staged")
  string(REPLACE " " ";" case ${case})
  list(GET case 0 layout)
  list(GET case 1 algorithm)
  set(name perf.all_reduce_${algorithm}_${layout})
  tutti_add_test(NAME ${name} LABELS ptx nvls
                 COMMAND ${PROJECT_SOURCE_DIR}/tests/multihost/run.sh --hosts ${layout} -- $<TARGET_FILE:all_reduce_perf>
                         --memory cuda --algorithm ${algorithm} -b 20 -e 80K -f 64 -n 1 -w 0 -c 1)
  tutti_test_environment(${name} TUTTI_PTX_DEVICES=6 LD_LIBRARY_PATH=${nvml})
  tutti_test_properties(${name} PROPERTIES PASS_REGULAR_EXPRESSION "values : 0 OK.*Algorithms +: ${algorithm} 20 to 81920 B")
endforeach()
tutti_on_stand_in(perf.gpu_pattern LABEL ptx SAMPLE 11 FILTER *)
tutti_add_test(NAME perf.gpu_counts LABELS ptx COMMAND $<TARGET_FILE:gpu_counts> hand 4096 2)
add_dependencies(tutti_on_ptx all_reduce_perf gpu_counts)

# Parts of the data path: staging ring, small messages with LL, graphs.
tutti_label_tests(staging executor.cuda_staging perf.all_reduce_staged)
tutti_label_tests(small executor.cuda_small perf.all_reduce_on_1_devices perf.all_reduce_on_8_devices)
tutti_label_tests(graphs executor.device_graphs device.streams ptx.runtime_graphs)
