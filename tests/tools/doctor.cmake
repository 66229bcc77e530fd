# Tests of `tutti doctor`. Uses variables of CMakeLists.txt.
tutti_add_test(NAME tools.doctor_lists_networks LABELS tools COMMAND ${expect} 0 "tcp +127.0.0.1 .lo."
               env TUTTI_SOCKET_IFNAME==lo $<TARGET_FILE:tutti_tool> doctor)
tutti_add_test(NAME tools.doctor_lists_devices LABELS tools device COMMAND ${expect} 0 "GPUs.*cuda.*(CUDA|NVIDIA|device 0)"
               $<TARGET_FILE:tutti_tool> doctor)
add_dependencies(tutti_on_gpu tutti_tool)
tutti_add_test(NAME tools.doctor_warns LABELS tools
               COMMAND env TUTTI_ALGORITHM=rign TUTTI_PROTOCOL=foo TUTTI_ENCRYPT=yes TUTTI_NCCL_MEMORY=gpu TUTTI_NCCL_COMPRESS=int9 TUTTI_SECRET_FILE=/nonexistent
                       TUTTI_SOCKET_IFNAME=nope TUTTI_TOPO_FILE=/nonexistent.xml TUTTI_RANK=5 TUTTI_RANKS=2 TUTTI_ROOT=foo
                       ${expect} 1 "tutti: no communicator can be created:.*yes.*must be 0 or 1.*rign.*did you mean ring.*foo.*must be.*/nonexistent.*nope.*nonexistent.xml.*must be from 0 to 1, since.*_ROOT.*rejects:.*gpu.*must be.*int9"
                       $<TARGET_FILE:tutti_tool> doctor)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tools.untuned "no line of such a file\n")
set(tune_text ${CMAKE_CURRENT_BINARY_DIR}/tools.untuned)
set(tune_folder ${CMAKE_CURRENT_BINARY_DIR})
set(tune_nowhere /nonexistent/tuned)
foreach(file text folder nowhere)
  tutti_add_test(NAME tools.doctor_checks_tune_file_${file} LABELS tools
                 COMMAND env TUTTI_TUNE=1 TUTTI_TUNE_FILE=${tune_${file}}
                         ${expect} 1 "tutti: TUTTI_TUNE_FILE is not usable: " $<TARGET_FILE:tutti_tool> doctor)
endforeach()
tutti_add_test(NAME tools.doctor_warns_of_unused_tune_file LABELS tools
               COMMAND env TUTTI_TUNE=0 TUTTI_TUNE_FILE=${CMAKE_CURRENT_BINARY_DIR} ${expect} 0
               "warning: TUTTI_TUNE_FILE is not usable: .* is not a regular file" $<TARGET_FILE:tutti_tool> doctor)
tutti_add_test(NAME tools.doctor_lists_machines_of_tune_file LABELS tools
               COMMAND env TUTTI_TUNE_FILE=${CMAKE_CURRENT_BINARY_DIR}/tools.machines ${expect} 0
               "autotuning results in .*/tools.machines\n.* 0.1.0, hosts 1x2, 1 rank on 1 CPU of some kind, shm: 1[ \n]+class of[ \n]+calls\n.*NV[ \n]+450[ \n]+GB/s:[ \n]+2[ \n]+classes .*no transport asked for:[ \n]+not used"
               $<TARGET_FILE:tutti_tool> doctor)
tutti_add_test(NAME tools.doctor_checks_log_file LABELS tools
               COMMAND env TUTTI_LOG_FILE=/nonexistent/log ${expect} 1 "tutti: TUTTI_LOG_FILE is not usable: write into /nonexistent/: No such"
                       $<TARGET_FILE:tutti_tool> doctor)
tutti_add_test(NAME tools.doctor_accepts_device_as_log LABELS tools
               COMMAND env TUTTI_LOG_FILE=/dev/null ${expect} 0 "machine\n" $<TARGET_FILE:tutti_tool> doctor)
tutti_add_test(NAME tools.doctor_lists_ignored_variables_of_nccl LABELS tools
               COMMAND env NCCL_SHM_DISABLE=1 ${expect} 0 "warning: variables of NCCL that have no effect in Tutti: NCCL_SHM_DISABLE"
                       $<TARGET_FILE:tutti_tool> doctor)
foreach(setting TUTTI_DETERMINISTIC=1 TUTTI_ALGORITHM=ring TUTTI_PROTOCOL=Simple NCCL_ALGO=Ring NCCL_PROTO=Simple)
  string(REGEX REPLACE "=.*" "" name ${setting})
  tutti_add_test(NAME tools.doctor_reports_no_autotuning_with_${name} LABELS tools
                 COMMAND env TUTTI_TUNE=1 ${setting} ${expect} 0
                         "warning: TUTTI_TUNE has no effect: ${name} (is 1|forces ring|forces Simple)"
                         $<TARGET_FILE:tutti_tool> doctor)
endforeach()
foreach(idle "TUTTI_TUNE is 0" "TUTTI_DETERMINISTIC is 1")
  string(REGEX REPLACE " is " "=" setting "${idle}")
  string(REGEX REPLACE " is .*" "" name "${idle}")
  tutti_add_test(NAME tools.doctor_warns_of_unused_tune_file_with_${name} LABELS tools
                 COMMAND env ${setting} TUTTI_TUNE_FILE=tools.unreported ${expect} 0
                         "warning: TUTTI_TUNE_FILE has no effect: ${idle}" $<TARGET_FILE:tutti_tool> doctor)
endforeach()
tutti_add_test(NAME tools.doctor_applies_tune_file LABELS tools
               COMMAND env TUTTI_TUNE=1 TUTTI_TUNE_FILE=tools.unreported ${expect} 0 "^tutti [^\n]*\nmachine"
                       sh -c "$<TARGET_FILE:tutti_tool> doctor >tools.doctor.txt && ! grep -q '^warning' tools.doctor.txt && cat tools.doctor.txt")
# No RDMA device has the name `nowhere`, so verbs is unavailable on all machines.
tutti_add_test(NAME tools.doctor_rejects_unavailable_transport LABELS tools
               COMMAND env TUTTI_TRANSPORT=verbs TUTTI_IB_HCA==nowhere ${expect} 1
                       "no communicator can be created: [^\n]* while opening verbs, for TUTTI_TRANSPORT" $<TARGET_FILE:tutti_tool> doctor)
tutti_add_test(NAME tools.doctor_lists_no_transport_between_hosts_when_unavailable LABELS tools
               COMMAND env TUTTI_TRANSPORT=verbs TUTTI_IB_HCA==nowhere ${expect} 1 "\n  between hosts +none: .* while[ \n]+opening[ \n]+verbs"
                       $<TARGET_FILE:tutti_tool> doctor)
tutti_add_test(NAME tools.doctor_tries_default_net_plugin_of_requested_transport LABELS tools
               COMMAND env TUTTI_TRANSPORT=net_plugin ${expect} 0 "\n  net_plugin +[^\n]*libnccl-net.so"
                       sh -c "$<TARGET_FILE:tutti_tool> doctor || true")
tutti_add_test(NAME tools.doctor_lists_warnings_in_json LABELS tools
               COMMAND env TUTTI_ALGORITM=ring ${expect} 0 "\"warnings\": .\"unknown variable TUTTI_ALGORITM: did you mean"
                       $<TARGET_FILE:tutti_tool> doctor --json)
tutti_add_test(NAME tools.doctor_lists_no_transport_between_hosts_with_shm LABELS tools
               COMMAND env TUTTI_TRANSPORT=shm ${expect} 0 "\n  between hosts +none: TUTTI_TRANSPORT is shm"
                       $<TARGET_FILE:tutti_tool> doctor)
foreach(setting TUTTI_PROTOCOL=LL128 TUTTI_CHANNELS=2)
  string(REGEX REPLACE "=.*" "" name ${setting})
  tutti_add_test(NAME tools.doctor_rejects_gpu_${name} LABELS tools COMMAND env ${setting} ${expect} 0
                 "no communicator can be created( on host memory)?: [^\n]*(is for GPUs|host memory has 1 channel)"
                 sh -c "$<TARGET_FILE:tutti_tool> doctor || true")
endforeach()
tutti_add_test(NAME tools.doctor_warns_of_ll128 LABELS tools COMMAND env NCCL_PROTO=LL128 ${expect} 0
               "warning: NCCL_PROTO has no effect on host memory: LL128 is for GPUs" $<TARGET_FILE:tutti_tool> doctor)
tutti_add_test(NAME tools.doctor_lists_each_invalid_setting LABELS tools
               COMMAND env TUTTI_TIMEOUT_MS=abc TUTTI_COMPRESS=wow ${expect} 1
                       "TUTTI_TIMEOUT_MS = abc  .invalid. default 600000.*created:.  TUTTI_TIMEOUT_MS is .abc.,.*  unknown compression format .wow."
                       $<TARGET_FILE:tutti_tool> doctor)
foreach(setting TUTTI_NCCL_MEMORY=foo TUTTI_NCCL_FALLBACK=/nonexistent.so TUTTI_LIBRARY=/nonexistent.so TUTTI_PYTORCH_PATH=x)
  string(REGEX REPLACE "=.*" "" name ${setting})
  tutti_add_test(NAME tools.doctor_checks_${name} LABELS tools COMMAND env ${setting} ${expect} 1
                 "tutti: libnccl.so.2 or the Python package rejects: [^\n]*${name}" $<TARGET_FILE:tutti_tool> doctor)
endforeach()
tutti_add_test(NAME tools.doctor_accepts_spaces_in_lists LABELS tools
               COMMAND env "TUTTI_NCCL_COMPRESS_TYPES=float32, float16" "TUTTI_NCCL_COMPRESS_COLLECTIVES=reduce, all_gather"
                       sh -c "! $<TARGET_FILE:tutti_tool> doctor 2>&1 | grep 'Python package rejects'")
tutti_add_test(NAME tools.doctor_reports_that_loopback_is_down LABELS tools
               COMMAND sh -c "unshare -n true || exit 77; exec ${expect} 1 'no rank can join: .*the loopback interface is down' unshare -n $<TARGET_FILE:tutti_tool> doctor")
tutti_add_test(NAME tools.doctor_shows_tuner_plugin LABELS tools
               COMMAND env TUTTI_TUNE=1 TUTTI_TUNER_PLUGIN=/nonexistent.so ${expect} 1
                       "tutti: TUTTI_TUNER_PLUGIN is not usable: .*/nonexistent.so" $<TARGET_FILE:tutti_tool> doctor)
set(dump_folder ${CMAKE_CURRENT_BINARY_DIR})
set(dump_nowhere /nonexistent/dump.xml)
foreach(file folder nowhere)
  tutti_add_test(NAME tools.doctor_checks_dump_file_${file} LABELS tools
                 COMMAND env TUTTI_TOPO_DUMP_FILE=${dump_${file}} ${expect} 1
                         "tutti: TUTTI_TOPO_DUMP_FILE is not usable: " $<TARGET_FILE:tutti_tool> doctor)
endforeach()
