# Tests without a test program: checks of the sources (tidy, documentation), the installed package, and MPI launchers.
if(NOT TUTTI_SANITIZE AND NOT TUTTI_TEST_FOLDERS)
  find_package(Python3 COMPONENTS Interpreter QUIET)
  if(Python3_FOUND)
    tutti_add_test(NAME tidy LABELS tidy COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/tidy)
    tutti_add_test(NAME tidy.rules LABELS tidy COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/tidy_test.py)
    # docs.links checks the links of all Markdown files. docs.site is skipped unless Sphinx is installed.
    tutti_add_test(NAME docs.links LABELS docs COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/docs/links.py)
    tutti_add_test(NAME docs.rules LABELS docs COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/docs/docs_test.py)
    tutti_add_test(NAME docs.site LABELS docs COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/docs/build.py
                   --output ${PROJECT_BINARY_DIR}/docs)
  endif()
  if(TARGET tutti)
    tutti_add_test(NAME package.examples LABELS package COMMAND ${PROJECT_SOURCE_DIR}/tests/package/examples.sh
                   ${PROJECT_BINARY_DIR} ${CMAKE_COMMAND} ${CMAKE_CXX_COMPILER} ${CMAKE_C_COMPILER})
    tutti_test_properties(package.examples PROPERTIES RUN_SERIAL ON)
    tutti_add_test(NAME package.debs LABELS package COMMAND ${PROJECT_SOURCE_DIR}/tests/package/debs.sh ${PROJECT_BINARY_DIR}
                   ${CMAKE_CPACK_COMMAND} ${CMAKE_C_COMPILER})
    tutti_add_test(NAME package.clean_root LABELS package slow downloads
                   COMMAND ${PROJECT_SOURCE_DIR}/tests/package/clean_root.sh ${PROJECT_BINARY_DIR})
    tutti_test_properties(package.debs PROPERTIES FIXTURES_SETUP debs)
    tutti_test_properties(package.clean_root PROPERTIES FIXTURES_REQUIRED debs TIMEOUT 900 COST 50)  # debootstrap downloads 100 MB.
  endif()
  if(Python3_FOUND)
    set(libraries "")
    if(TUTTI_GLIBC AND TARGET tutti)
      set(libraries $<TARGET_FILE:tutti> $<TARGET_FILE:tutti_nccl>)
    endif()
    tutti_add_test(NAME package.old_glibc LABELS package COMMAND ${PROJECT_SOURCE_DIR}/tests/package/old_glibc.sh
                   ${PROJECT_BINARY_DIR} ${Python3_EXECUTABLE} ${CMAKE_C_COMPILER} ${CMAKE_CXX_COMPILER} ${libraries})
  endif()
  # Dependencies of tests are off in a build without tests.
  set(off "off +[^:]+: TUTTI_DEVELOP is OFF")
  tutti_add_test(NAME package.summary LABELS package COMMAND ${PROJECT_SOURCE_DIR}/tests/tools/expect.sh 0
                 "NCCL +${off}[^A-Z]+MPI +${off}[^A-Z]+GTEST +${off}" ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR}
                 -B ${PROJECT_BINARY_DIR}/library_alone -DTUTTI_DEVELOP=OFF -DTUTTI_CUDA=OFF -DTUTTI_DEPS=${TUTTI_DEPS})
  if(TARGET alltoall_perf AND TUTTI_HAS_MPI)
    tutti_add_test(NAME perf.mpirun LABELS perf COMMAND ${TUTTI_MPIRUN} -n 2 $<TARGET_FILE:alltoall_perf> -b 1K -e 64K -f 4)
    # By default, Open MPI refuses to start as root or with more ranks than cores.
    tutti_test_properties(perf.mpirun PROPERTIES RUN_SERIAL ON)
    tutti_test_environment(perf.mpirun OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
                           OMPI_MCA_rmaps_base_oversubscribe=1)
  endif()
endif()
