# The stand-in for the CUDA runtime.
add_subdirectory(runtime)
tutti_tests(ptx_runtime_tests runtime_streams_test.cc runtime_graphs_test.cc LINKS tutti_ptx_runtime tutti_base LABELS ptx)
tutti_test(runtime_memory_test.cc LINKS tutti_ptx_runtime tutti_base LABELS ptx)  # Sets the environment before main().
tutti_test(runtime_processes_test.cc LINKS tutti_ptx_runtime tutti_base bootstrap_processes LABELS ptx)
add_library(tutti_ptx_runtime_kernels STATIC runtime_kernels.cu)
target_link_libraries(tutti_ptx_runtime_kernels PUBLIC tutti_ptx_runtime tutti_base PRIVATE tutti_flags)
target_compile_options(tutti_ptx_runtime_kernels PRIVATE --expt-relaxed-constexpr)
tutti_tests(ptx_runtime_kernels_tests runtime_kernels_test.cc runtime_races_test.cc
            LINKS tutti_ptx_runtime_kernels bootstrap_processes
            LABELS ptx)
tutti_test(launch_attributes_test.cc LINKS tutti_device CUDA::cudart_static bootstrap_processes LABELS ptx)
tutti_test(copy_engines_test.cc LINKS tutti_communicator_device tutti_test_device tutti_device bootstrap_processes LABELS ptx)
tutti_test(copy_engine_failures_test.cc LINKS tutti_communicator_device tutti_test_device tutti_device bootstrap_processes LABELS ptx)
# The stand-in for NVML reports NVSwitches, which staging rings need.
tutti_test(switches_test.cc LINKS tutti_communicator_device tutti_test_device tutti_device bootstrap_processes LABELS ptx nvls)
tutti_test(switches_of_hosts_test.cc LINKS tutti_communicator_device tutti_test_device tutti_device bootstrap_processes LABELS ptx nvls)
tutti_test(ll_between_hosts_test.cc LINKS tutti_communicator_device tutti_test_device tutti_device bootstrap_processes LABELS ptx small)
tutti_test(switched_windows_test.cc LINKS tutti_communicator_device tutti_test_device tutti_device bootstrap_processes LABELS ptx nvls)
tutti_test(nvlink_domains_test.cc LINKS tutti_communicator_device tutti_test_device tutti_device bootstrap_processes LABELS ptx nvls)
tutti_test(window_objects_test.cc LINKS tutti_communicator_device tutti_test_device tutti_device bootstrap_processes LABELS ptx nvls)
get_property(nvml GLOBAL PROPERTY TUTTI_PTX_NVML_FOLDER)
tutti_test_environment(ptx.switches LD_LIBRARY_PATH=${nvml})
tutti_test_environment(ptx.switches_of_hosts LD_LIBRARY_PATH=${nvml})
tutti_test_environment(ptx.ll_between_hosts LD_LIBRARY_PATH=${nvml})
tutti_test_environment(ptx.switched_windows LD_LIBRARY_PATH=${nvml})
tutti_test_environment(ptx.nvlink_domains LD_LIBRARY_PATH=${nvml})
tutti_test_environment(ptx.window_objects LD_LIBRARY_PATH=${nvml})
tutti_test_again(ptx.switches_deterministic OF ptx.switches LABELS ptx nvls ARGUMENTS --gtest_filter=*UnlessDeterministic*
                 ENVIRONMENT TUTTI_DETERMINISTIC=1 LD_LIBRARY_PATH=${nvml})
tutti_test_again(ptx.switches_disabled OF ptx.switches LABELS ptx nvls ARGUMENTS --gtest_filter=*UnlessDisabled*
                 ENVIRONMENT NCCL_NVLS_ENABLE=0 LD_LIBRARY_PATH=${nvml})
tutti_test_again(ptx.switched_windows_disabled OF ptx.switched_windows LABELS ptx nvls
                 ARGUMENTS --gtest_filter=*UnlessDisabled* ENVIRONMENT NCCL_NVLS_ENABLE=0 LD_LIBRARY_PATH=${nvml})
if(TUTTI_HAS_NCCL)
  tutti_test(runtime_exit_test.cc LINKS tutti_ptx_runtime_kernels tutti_nccl LABELS ptx)
  use_nccl_header(ptx_runtime_exit_test)
  tutti_tests(ptx_nccl_tests nccl_memory_test.cc old_driver_test.cc programs_test.cc thread_blocks_test.cc LINKS tutti_ptx_runtime tutti_nccl bootstrap_processes LABELS ptx)
  use_nccl_header(ptx_nccl_tests)
endif()
tutti_test_again(ptx.unknown_setting OF ptx.runtime_streams LABELS ptx ENVIRONMENT TUTTI_PTX_SEEDS=1
                 ARGUMENTS --gtest_filter=*RunsWorkInOrder)
tutti_test_properties(ptx.unknown_setting PROPERTIES PASS_REGULAR_EXPRESSION "TUTTI_PTX_SEEDS is no setting")

# The example of GPUs, on two devices.
add_executable(tutti_example_of_gpus ${PROJECT_SOURCE_DIR}/examples/cuda/process_per_gpu.c)
target_link_libraries(tutti_example_of_gpus PRIVATE tutti CUDA::cudart_static tutti_flags)
add_dependencies(tutti_on_ptx tutti_example_of_gpus)
set(example "TUTTI_RANKS=2 $<TARGET_FILE:tutti_example_of_gpus>")
tutti_add_test(NAME ptx.example LABELS ptx
               COMMAND sh -c "TUTTI_RANK=0 LOCAL_RANK=0 ${example} & TUTTI_RANK=1 LOCAL_RANK=1 ${example}; status=$?; wait $! && exit $status")
tutti_test_environment(ptx.example TUTTI_PTX_DEVICES=2)

# The machine reads the kernels of all architectures, also those that no test executes.
set(kernels src/executor/cuda/kernel.cu src/executor/cuda/ll_kernel.cu src/executor/cuda/compressed_kernel.cu src/executor/cuda/residual_kernel.cu
            tests/compression/cuda_codec.cu perf/gpu/kernels.cu perf/gpu/latencies.cu
            perf/gpu/two_shot.cu perf/tool/gpu_pattern.cu)
list(TRANSFORM kernels PREPEND ${PROJECT_SOURCE_DIR}/)
tutti_test(architectures_test.cc LINKS tutti_ptx_machine LABELS ptx)
set(architectures 80 90)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
  list(APPEND architectures 100)
endif()
foreach(architecture ${architectures})
  add_library(tutti_ptx_for_${architecture} OBJECT ${kernels})
  set_target_properties(tutti_ptx_for_${architecture} PROPERTIES CUDA_PTX_COMPILATION ON
                        CUDA_ARCHITECTURES ${architecture}-virtual)
  target_include_directories(tutti_ptx_for_${architecture} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(tutti_ptx_for_${architecture} PRIVATE --expt-relaxed-constexpr -fmad=false)
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/ptx_for_${architecture}.txt
       CONTENT "$<JOIN:$<TARGET_OBJECTS:tutti_ptx_for_${architecture}>,\n>\n")
  add_dependencies(ptx_architectures_test tutti_ptx_for_${architecture})
  if(TARGET ptx_nccl_tests)
    add_dependencies(ptx_nccl_tests tutti_ptx_for_${architecture})
  endif()
endforeach()
set(lists "TUTTI_PTX_LISTS=\"${CMAKE_CURRENT_BINARY_DIR}/ptx_for_\"")
target_compile_definitions(ptx_architectures_test PRIVATE ${lists})
if(TARGET ptx_nccl_tests)
  target_compile_definitions(ptx_nccl_tests PRIVATE ${lists})
endif()
include(existing_tests.cmake)
# A sample of the mutants, in one fast test. It finds less than all tests of mutate.sh do.
tutti_add_test(NAME ptx.mutants_of_all_reduce LABELS ptx
               COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/mutate.sh --build ${PROJECT_BINARY_DIR} -j 2 --tests two_shot --seeds 1
                       --every 2 --min-found 50)
tutti_test_properties(ptx.mutants_of_all_reduce PROPERTIES PROCESSORS 2)
tutti_add_test(NAME ptx.explanations_of_mutants LABELS ptx
               COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/mutate.sh --build ${PROJECT_BINARY_DIR} --list)
