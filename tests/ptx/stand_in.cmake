# The stand-in for the CUDA runtime.
add_subdirectory(runtime)
tutti_tests(ptx_runtime_tests runtime_streams_test.cc runtime_graphs_test.cc LINKS tutti_ptx_runtime tutti_base LABELS ptx)
tutti_test(runtime_memory_test.cc LINKS tutti_ptx_runtime tutti_base LABELS ptx)  # Sets the environment before main().
tutti_test(runtime_processes_test.cc LINKS tutti_ptx_runtime tutti_base bootstrap_processes LABELS ptx)
tutti_test(runtime_kernels_test.cc LINKS tutti_ptx_runtime tutti_base bootstrap_processes LABELS ptx)
target_sources(ptx_runtime_kernels_test PRIVATE runtime_kernels.cu)
target_compile_options(ptx_runtime_kernels_test PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
include(existing_tests.cmake)
