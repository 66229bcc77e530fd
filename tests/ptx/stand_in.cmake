# The stand-in for the CUDA runtime.
add_subdirectory(runtime)
