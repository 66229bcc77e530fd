# Tests of the effect of this machine and its environment on `tutti explain`. Uses variables of CMakeLists.txt.
set(here $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 4K)
string(REPLACE ";" " " line "${here}")

# Ranks share the cores of this machine, unless --cores is given.
tutti_add_test(NAME tools.explain_uses_cores_of_this_machine LABELS tools COMMAND ${expect} 0 "^same$"
               sh -c "n=$(getconf _NPROCESSORS_ONLN) && ${line} --json --ranks $((4 * n)) >tools.here.json && ${line} --json --ranks $((4 * n)) --cores $n >tools.named.json && cmp tools.here.json tools.named.json && echo same")
tutti_add_test(NAME tools.explain_shows_source_of_cores LABELS tools COMMAND ${expect} 0
               "host memory, (1 core|[0-9]+ cores) .this machine. shared by all ranks\n" ${here} --ranks 4)
tutti_add_test(NAME tools.explain_shows_number_of_cores LABELS tools COMMAND ${expect} 0 "host memory, 1 core shared by all ranks\n"
               ${here} --ranks 4 --cores 1)
tutti_add_test(NAME tools.explain_prints_cores_in_json LABELS tools COMMAND ${expect} 0 "\"cores\": 3, " ${here} --ranks 4 --cores 3
               --json)
tutti_add_test(NAME tools.explain_has_no_cores_of_other_hosts LABELS tools COMMAND ${expect} 0
               "host memory, between hosts, one core per rank\n" ${here} --groups 2x2)
tutti_add_test(NAME tools.explain_has_no_cores_behind_links LABELS tools COMMAND ${expect} 0 "\"cores\": null, "
               ${here} --ranks 4 --transport tcp --link 10 --json)
tutti_add_test(NAME tools.explain_ignores_cores_on_gpus LABELS tools COMMAND ${expect} 0 ", GPUs\n"
               ${here} --ranks 4 --memory cuda)

# Definition of --bytes, compared with nccl-tests.
tutti_add_test(NAME tools.explain_counts_blocks LABELS tools COMMAND ${expect} 0
               "^all_gather of 8 ranks, blocks of 67108864 bytes .536870912 as nccl-tests and tutti simulate count., GPUs\n"
               $<TARGET_FILE:tutti_tool> explain --collective all_gather --bytes 64M --topology dgx-h100)
tutti_add_test(NAME tools.explain_counts_bytes_like_nccl_tests LABELS tools COMMAND ${expect} 0
               "^all_reduce of 8 ranks, blocks of 4096 bytes, host memory" ${here} --ranks 8)
tutti_add_test(NAME tools.explain_help_defines_bytes LABELS tools COMMAND ${expect} 0
               "--bytes SIZE +Size of a block in bytes: .*tutti simulate count a rank.s larger buffer" $<TARGET_FILE:tutti_tool> explain --help)

# The requested transport.
tutti_add_test(NAME tools.explain_applies_transport LABELS tools COMMAND env TUTTI_TRANSPORT=tcp ${expect} 0
               ", between hosts, [^\n]*\nTUTTI_TRANSPORT selects tcp.\nchosen: [a-z_]+/Simple .*Simple is the only protocol between hosts: ring/LL, "
               ${here} --ranks 2)
tutti_add_test(NAME tools.explain_prefers_transport_option LABELS tools COMMAND env TUTTI_TRANSPORT=tcp ${expect} 0
               "^all_reduce of 2 ranks, [^\n]*, host memory, [^\n]*\nchosen: " ${here} --ranks 2 --transport shm)
tutti_add_test(NAME tools.explain_uses_links_of_topology LABELS tools COMMAND env TUTTI_TRANSPORT=tcp ${expect} 0
               ", GPUs\nTUTTI_TRANSPORT has no effect here: --topology determines the links.\n" ${here} --topology dgx-h100)
foreach(case verbs:1:--ranks:2 shm:2:--groups:2x2 foo:2:--ranks:2)
  string(REPLACE ":" ";" case ${case})
  list(POP_FRONT case transport status)
  set(words_verbs " while opening verbs, for TUTTI_TRANSPORT")
  set(words_shm "TUTTI_TRANSPORT is shm, which works within one host, but --groups has 2 hosts")
  set(words_foo "TUTTI_TRANSPORT is .foo.: must be one of shm, tcp")
  tutti_add_test(NAME tools.explain_rejects_transport_${transport} LABELS tools
                 COMMAND env TUTTI_TRANSPORT=${transport} TUTTI_IB_HCA==nowhere ${expect} ${status} "${words_${transport}}" ${here} ${case})
endforeach()
foreach(transport verbs ucx)
  tutti_add_test(NAME tools.explain_predicts_${transport}_like_tcp LABELS tools
                 COMMAND env TUTTI_TRANSPORT=shm+${transport} ${expect} 0
                         "\nTUTTI_TRANSPORT selects shm.${transport} .predicted like tcp..\nchosen: " ${here} --groups 2x2)
endforeach()
tutti_add_test(NAME tools.explain_predicts_tcp_as_it_is LABELS tools COMMAND env TUTTI_TRANSPORT=shm+tcp ${expect} 0
               "\nTUTTI_TRANSPORT selects shm.tcp.\nchosen: " ${here} --groups 2x2)
tutti_add_test(NAME tools.explain_needs_no_devices_for_other_hosts LABELS tools
               COMMAND env TUTTI_TRANSPORT=verbs TUTTI_IB_HCA==nowhere ${expect} 0
                       "^all_reduce of 4 ranks, .*TUTTI_TRANSPORT selects verbs .predicted like tcp., also within hosts." ${here} --groups 2x2)

# NCCL's variables have no effect on calls that do not support them.
tutti_add_test(NAME tools.explain_ignores_ll128_on_host_memory LABELS tools COMMAND env NCCL_PROTO=LL128 ${expect} 0
               "\nNCCL_PROTO has no effect here: LL128 is for GPUs.\nchosen: one_shot/(Simple|LL) " ${here} --ranks 2)
tutti_add_test(NAME tools.explain_applies_ll128_on_gpus LABELS tools COMMAND env NCCL_PROTO=LL128 ${expect} 0
               "\nNCCL_PROTO forces LL128.\nchosen: [a-z_]+/LL128 " ${here} --ranks 2 --memory cuda)
tutti_add_test(NAME tools.explain_ignores_ll_between_hosts LABELS tools COMMAND env NCCL_PROTO=LL ${expect} 0
               "\nNCCL_PROTO has no effect here: between hosts, Simple is the only protocol.\nchosen: [a-z_]+/Simple " ${here} --groups 2x2)
tutti_add_test(NAME tools.explain_rejects_tutti_protocol_ll128 LABELS tools COMMAND env TUTTI_PROTOCOL=LL128 ${expect} 1
               "protocol 'LL128' needs GPUs" ${here} --ranks 2)
foreach(protocol "" "--protocol;LL")
  string(REPLACE "--protocol;" "_beside_" suffix "${protocol}")
  tutti_add_test(NAME tools.explain_rejects_tutti_channels${suffix} LABELS tools COMMAND env TUTTI_CHANNELS=2 ${expect} 1
                 "2 channels: host memory has 1 channel" ${here} --ranks 2 ${protocol})
endforeach()
tutti_add_test(NAME tools.explain_applies_channels LABELS tools COMMAND env TUTTI_CHANNELS=2 ${expect} 0
               "\nTUTTI_CHANNELS selects 2 channels.\nchosen: " ${here} --ranks 2 --memory cuda)
tutti_add_test(NAME tools.explain_applies_channels_on_topology LABELS tools COMMAND env TUTTI_CHANNELS=2 ${expect} 0
               " two_shot +Simple +2 " $<TARGET_FILE:tutti_tool> explain --topology dgx-a100 --bytes 32M..64M)

# --type applies to compressed calls only.
tutti_add_test(NAME tools.explain_rejects_type_without_compression LABELS tools COMMAND ${expect} 2
               "--type needs --compress or --max-relative-error: the time of other calls depends on their bytes only. omit it"
               ${here} --ranks 2 --type bfloat16)
tutti_add_test(NAME tools.explain_accepts_type_with_compression_of_environment LABELS tools COMMAND env TUTTI_COMPRESS=int8
               ${expect} 0 "TUTTI_COMPRESS selects int8" ${here} --ranks 2 --type bfloat16)
