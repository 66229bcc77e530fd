# What `tutti explain` prints, and what it refuses; of the commands in CMakeLists.txt.
tutti_add_test(NAME tools.explain LABELS tools COMMAND ${expect} 0
               "^all_reduce of 4 ranks, blocks of 65536 bytes.*two_shot +Simple .*two_shot with Simple is chosen: it takes .* us .*left out:.*  ring +LL +not considered unless asked for"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K --ranks 4 --cores 4)
tutti_add_test(NAME tools.explain_considers_lines_that_are_asked_for LABELS tools COMMAND ${expect} 0
               "two_shot +LL [^\n]*\n.*left out:.*  ring +Simple +another protocol is forced"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K --ranks 4 --cores 4 --protocol LL)
tutti_add_test(NAME tools.explain_json LABELS tools COMMAND ${expect} 0
               "\"algorithm\": \"hierarchical\".*\"verdict\": .*\"why\": \"between hosts messages go in Simple\""
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --groups 4x8 --json)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tools.tuned
     "tutti-tune 2\nmachine 0.1.0, hosts 1x2, 2 ranks on 2 CPUs of some kind, shm\nclass all_gather 32\n"
     "kept direct Simple 32768 1 11.25 777.5\ntried ring Simple 65536 1 12 0\n"
     "class all_gather 32 mapped\nkept direct_mapped Simple 65536 1 9.5 555.5\ntried direct Simple 32768 1 11.25 666.5\n")
tutti_add_test(NAME tools.explain_measured LABELS tools COMMAND ${expect} 0 "direct +Simple [^\n]* 777.5.*measured on 0.1.0, hosts 1x2"
               $<TARGET_FILE:tutti_tool> explain --collective all_gather --bytes 64K --ranks 2 --tune-file
               ${CMAKE_CURRENT_BINARY_DIR}/tools.tuned)
tutti_add_test(NAME tools.explain_measured_mapped LABELS tools
               COMMAND ${expect} 0 "direct_mapped +Simple [^\n]* 555.5.*direct +Simple [^\n]* 666.5.*measured on 0.1.0, hosts 1x2"
               $<TARGET_FILE:tutti_tool> explain --collective all_gather --bytes 64K --ranks 2 --cores 2 --mapped --tune-file
               ${CMAKE_CURRENT_BINARY_DIR}/tools.tuned)
# Of several machines, and of devices.
set(class "class all_reduce 32\nkept ring Simple 65536 4 11 1.5\ntried two_shot Simple 32768 4 5")
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tools.machines
     "tutti-tune 2\nmachine 0.1.0, hosts 1x2, 1 rank on 1 CPU of some kind, shm\n${class} 111.5\n"
     "machine 0.1.0, hosts 1x2, 2 ranks on 1 CPU of some kind, shm\n${class} 222.5\n"
     "machine 0.1.0, 8 ranks on NVIDIA H100 each, 32 teams, links NV 450 GB/s\n${class} 333.5\n"
     "class all_reduce 32 mapped\nkept two_shot_mapped Simple 65536 4 11 777.5\n"
     "machine 0.1.0, 8 ranks on NVIDIA H100 each, 32 teams, links 16 NV 100 GB/s and 12 SYS, laid out as 01234567\n${class} 444.5\n"
     "machine 0.1.0, hosts 1x2, 2 CPUs of some kind, no transport asked for\n${class} 555.5\n"
     "machine 0.1.0, 2 ranks on NVIDIA H100 each, 32 teams\n${class} 666.5\n")
function(tutti_test_of_machines name pattern)
  tutti_add_test(NAME tools.explain_machines_${name} LABELS tools COMMAND env -u TUTTI_ALGORITHM ${expect} 0 "${pattern}"
                 $<TARGET_FILE:tutti_tool> explain --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.machines --collective all_reduce
                 --bytes 64K ${ARGN})
endfunction()
tutti_test_of_machines(are_told "two_shot +Simple [^\n]* 222.5\n.*measured on [^\n]*, 2 ranks on 1 CPU [^\n]*\nmeasured as well on [^\n]*, 1 rank on 1 CPU [^\n]*: see --machine\nWith"
                       --ranks 2)
tutti_test_of_machines(can_be_named "two_shot +Simple [^\n]* 111.5\n.*measured on [^\n]*, 1 rank on 1 CPU [^\n]*\nWith TUTTI_TUNE=1 ring"
                       --ranks 2 --machine ", 1 rank on")
tutti_test_of_machines(have_so_many_cores "two_shot +Simple [^\n]* 222.5\n.*measured on [^\n]*, 2 ranks on 1 CPU [^\n]*\n(With|two_shot|ring|one_shot)"
                       --ranks 2 --cores 1)
# Of 3 threads, and of ranks that are bound to a core each, or some of them.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tools.shared
     "tutti-tune 2\nmachine 0.1.0, hosts 1x3, 3 ranks in a process on 2 CPUs of some kind, shm\n${class} 111.5\n"
     "machine 0.1.0, hosts 1x3, 1 rank on 1 CPU of some kind, shm\n${class} 222.5\n"
     "machine 0.1.0, hosts 1x3, 1 rank on 1 CPU and 2 ranks on 5 CPUs of some kind, shm\n${class} 333.5\n")
foreach(case 2:111.5:threads 3:222.5:bound_ranks)
  string(REPLACE ":" ";" case ${case})
  list(POP_FRONT case cores measured whose)
  tutti_add_test(NAME tools.explain_machines_have_so_many_cores_of_${whose} LABELS tools
                 COMMAND env -u TUTTI_ALGORITHM ${expect} 0 "two_shot +Simple [^\n]* ${measured}\n.*measured on [^\n]*\n(With|two_shot|ring|one_shot)"
                         $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K --ranks 3 --cores ${cores}
                         --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.shared)
endforeach()
tutti_test_of_machines(of_devices "on devices\n.*two_shot +Simple [^\n]* 444.5\n.*measured on [^\n]*NV 100 GB/s[^\n]*\nmeasured as well on [^\n]*NV 450 GB/s: see --machine\nWith TUTTI_TUNE=1 ring with Simple is chosen, kept: measured 1.5 us, two_shot with Simple 444.5. without"
                       --ranks 8 --memory cuda)
tutti_test_of_machines(of_devices_can_be_named "two_shot +Simple [^\n]* 333.5\n.*measured on [^\n]*NV 450 GB/s\nWith" --ranks 8 --memory cuda
                       --machine "links NV 450")
tutti_test_of_machines(of_devices_by_their_links "two_shot +Simple [^\n]* 333.5\n.*measured on [^\n]*NV 450 GB/s\nWith" --topology dgx-h100)
tutti_test_of_machines(of_devices_named_in_spite_of_their_links "two_shot +Simple [^\n]* 444.5\n.*measured on [^\n]*laid out as 01234567\nWith"
                       --topology dgx-h100 --machine "laid out")
if(TUTTI_HAS_FORMATS)
  # Ranks are in the order of the driver's numbers: NVLinks are between the first and the third of them, and the others.
  set(gpus "")
  foreach(gpu 0:1:2 2:2:1 1:3:4 3:4:3)
    string(REPLACE ":" ";" gpu ${gpu})
    list(GET gpu 0 number)
    list(GET gpu 1 bus)
    list(GET gpu 2 peer)
    string(APPEND gpus "<pci busid='0000:0${bus}:00.0' class='0x030200' link_speed='16.0 GT/s PCIe' link_width='16'>"
                       "<gpu dev='${number}' sm='80' rank='${number}' gdr='0'>"
                       "<nvlink target='0000:0${peer}:00.0' count='4' tclass='0x030200'/></gpu></pci>\n")
  endforeach()
  string(REPLACE "'" "\"" pairs "<system version='1'>\n<cpu numaid='0' affinity='ffff' arch='x86_64' vendor='GenuineIntel' familyid='6' modelid='85'>\n${gpus}</cpu>\n</system>\n")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tools.pairs.xml "${pairs}")
  set(pairs "machine 0.1.0, 4 ranks on NVIDIA A100 each, 32 teams, links 2 NV 100 GB/s and 4 PHB, laid out as")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tools.pairs "tutti-tune 2\n${pairs} 205ee5bc\n${class} 111.5\n${pairs} 41fef03c\n${class} 222.5\n")
  tutti_add_test(NAME tools.explain_machines_of_devices_by_their_numbers LABELS tools
                 COMMAND env -u TUTTI_ALGORITHM ${expect} 0 "two_shot +Simple [^\n]* 111.5\n.*measured on [^\n]* 205ee5bc\nWith"
                         $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K
                         --topology ${CMAKE_CURRENT_BINARY_DIR}/tools.pairs.xml --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.pairs)
endif()
tutti_test_of_machines(of_devices_in_windows "two_shot_mapped +Simple [^\n]* 777.5\n.*With TUTTI_TUNE=1 two_shot_mapped with Simple is chosen"
                       --ranks 8 --memory cuda --mapped)
tutti_test_of_machines(of_devices_of_earlier_versions_are_none "/tools.machines has nothing of such calls on such devices\n" --ranks 2 --memory cuda)
tutti_test_of_machines(of_devices_are_not_for_host_memory "/tools.machines has nothing of such calls on such hosts\n" --ranks 8)
tutti_test_of_machines(in_json "\"measured_us\": 444.5.*\"measured_on\": \"[^\"]*NV 100 GB/s[^\"]*\",\n\"measured_as_well_on\": \\[\"[^\"]*NV 450 GB/s\"\\],\n\"verdict\": \"With"
                       --ranks 8 --memory cuda --json)
# Of what was kept, what communicators would heed.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tools.kept
     "tutti-tune 2\nmachine 0.1.0, hosts 1x4, 4 ranks on 4 CPUs of some kind, shm\nclass all_reduce 32\n"
     "kept one_shot Simple 65536 1 11 1.5\ntried two_shot Simple 32768 1 5 9.5\n"
     "class all_reduce 34\nkept two_shot Simple 32768 1 9 4.5\ntried one_shot Simple 65536 1 20 8.5\n"
     "class all_reduce 36\nkept best_of_all Simple 65536 1 1 1.5\ntried ring Simple 65536 1 20 8.5\n"
     "class all_reduce 38\nkept two_shot LL 560 1 1 1.5\n"
     "class all_gather 32\nkept ring Simple 32768 1 9 2.5\n"
     "class all_gather 32 mapped\nkept direct Simple 32768 1 9 3.5\ntried direct_mapped Simple 65536 1 9 7.5\n"
     "class all_gather 34 mapped\nkept direct Simple 32768 1 9 3.5\ntried direct_mapped Simple 65536 1 9 7.5\n"
     "class all_gather 36\nkept ring Simple 32768 1 9 2.5\n"
     "class all_gather 36 mapped\nkept direct_mapped Simple 65536 1 9 5.5\n"
     "class all_gather 38\nkept ring Simple 32768 1 9 2.5\n"
     "class all_reduce 40\nkept one_shot Simple 65536 1 11 1.5\n"
     "class all_reduce 42\nkept one_shot Simple 65536 1 11 1.5\ntried two_shot Simple 65536 1 11 1.49\n"
     "machine 0.1.0, hosts 4x1, 4 ranks on 2 CPUs of some kind, tcp\n"
     "class all_reduce 40\nkept ring Simple 65536 1 9 5.5\ntried two_shot Simple 65536 1 9 6.5\n")
function(tutti_test_of_kept name pattern)
  set(cores --cores 4)
  if("--link" IN_LIST ARGN)  # Of hosts that are not this one.
    set(cores "")
  endif()
  tutti_add_test(NAME tools.explain_kept_${name} LABELS tools COMMAND env -u TUTTI_ALGORITHM ${expect} 0 "${pattern}"
                 $<TARGET_FILE:tutti_tool> explain --ranks 4 ${cores} --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.kept --collective ${ARGN})
endfunction()
tutti_test_of_kept(is_chosen "\nWith TUTTI_TUNE=1 one_shot with Simple is chosen, kept: measured 1.5 us, two_shot with Simple 9.5. without, two_shot with Simple is chosen"
                   all_reduce --bytes 64K)
tutti_test_of_kept(need_not_be_the_quickest "one_shot with Simple is chosen, kept: measured 1.5 us, two_shot with Simple 1.49 .only what is 1 % better in all, and better in 75 % of the rounds, replaces the first choice.. without"
                   all_reduce --bytes 2M)
tutti_test_of_kept(of_its_class "\ntwo_shot with Simple is chosen: it [^\n]*. with TUTTI_TUNE=1 it is kept: measured 4.5 us, one_shot with Simple 8.5"
                   all_reduce --bytes 128K)
tutti_test_of_kept(has_no_effect_unless_it_is_a_candidate "ring +Simple [^\n]* 8.5\n.*\nmeasured on [^\n]*\n[a-z_]+ with Simple is chosen: it takes [^\n]* takes [0-9.]+\\.\nleft"
                   all_reduce --bytes 256K)
tutti_test_of_kept(has_no_effect_upon_what_is_forced "\none_shot with Simple is chosen: nothing else is possible\\.\n"
                   all_reduce --bytes 64K --algorithm one_shot)
tutti_test_of_kept(has_no_effect_in_another_protocol "two_shot with Simple is chosen: it takes [^\n]* takes [0-9.]+\\.\nleft" all_reduce --bytes 512K)
tutti_add_test(NAME tools.explain_kept_has_no_effect_beside_a_name_of_other_collectives LABELS tools
               COMMAND env TUTTI_ALGORITHM=two_shot ${expect} 0 "without effect here.*\n[a-z_]+ with Simple is chosen: it takes [^\n]* takes [0-9.]+\\.\nleft"
                       $<TARGET_FILE:tutti_tool> explain --ranks 4 --cores 4 --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.kept
                       --collective all_gather --bytes 64K)
tutti_test_of_kept(has_no_effect_in_a_format "\ntwo_shot +Simple [^\n]* - +int8 .*\n[^\n]*/tools.kept has such calls, but as none of these\n[a-z_]+ with Simple in int8 is chosen: it takes"
                   all_reduce --bytes 64K --compress int8)
tutti_test_of_kept(is_raw_within_a_bound "\none_shot +Simple [^\n]* 1.5 +raw .*\ntwo_shot +Simple [^\n]* - +int8 .*\nWith TUTTI_TUNE=1 one_shot with Simple is chosen, kept"
                   all_reduce --bytes 64K --max-relative-error 0.05 --type bfloat16)
tutti_test_of_kept(leaves_rounding_to_predictions "\ntwo_shot +Simple [^\n]* - +int8 .*\ntwo_shot +Simple [^\n]* 6.5 +raw .*\n[a-z_]+ with Simple in [a-z0-9_]+ is chosen: it takes [^\n]* takes [0-9.]+\\.\nleft"
                   all_reduce --bytes 1M --transport tcp --link 1 --max-relative-error 0.05)
tutti_test_of_kept(of_its_transport "With TUTTI_TUNE=1 ring with Simple is chosen, kept: measured 5.5 us, two_shot with Simple 6.5"
                   all_reduce --bytes 1M --transport tcp --link 1)
tutti_add_test(NAME tools.explain_kept_of_ranks_that_are_apart_by_their_transport LABELS tools
               COMMAND env TUTTI_TRANSPORT=tcp ${expect} 0 "\nWith TUTTI_TUNE=1 ring with Simple is chosen, kept: measured 5.5 us, two_shot with Simple 6.5"
                       $<TARGET_FILE:tutti_tool> explain --groups 2x2 --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.kept
                       --collective all_reduce --bytes 1M)
tutti_test_of_kept(of_lanes_is_for_lanes "With TUTTI_TUNE=1 ring with Simple is chosen, kept: measured 2.5 us. without" all_gather --bytes 64K)
tutti_test_of_kept(of_lanes_is_for_all_where_mapped_memory_lost "ring with Simple is chosen, kept: measured 2.5 us. without, direct_mapped"
                   all_gather --bytes 64K --mapped)
tutti_test_of_kept(where_mapped_memory_lost_is_for_lanes "direct with Simple [^\n]*kept: measured 3.5 us" all_gather --bytes 128K)
tutti_test_of_kept(of_mapped_is_for_mapped "direct_mapped with Simple [^\n]*kept: measured 5.5 us" all_gather --bytes 256K --mapped)
tutti_test_of_kept(of_lanes_is_not_for_mapped "\n[a-z_]+_mapped with Simple is chosen: it takes [^\n]* takes [0-9.]+\\.\nleft"
                   all_gather --bytes 512K --mapped)
tutti_add_test(NAME tools.explain_takes_as_many_ranks_in_groups LABELS tools
               COMMAND ${expect} 0 "^all_reduce of 524288 ranks, groups 65536x8"
                       $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 1M --groups 65536x8)
tutti_add_test(NAME tools.explain_misses_a_tune_file LABELS tools
               COMMAND ${expect} 1 "open '/nonexistent/tuned', which --tune-file names: No such file"
               $<TARGET_FILE:tutti_tool> explain --collective all_gather --bytes 64K --ranks 2 --tune-file /nonexistent/tuned)
tutti_add_test(NAME tools.explain_awaits_the_tune_file_of_the_environment LABELS tools
               COMMAND env TUTTI_TUNE_FILE=/nonexistent/tuned ${expect} 0 "is chosen"
               $<TARGET_FILE:tutti_tool> explain --collective all_gather --bytes 64K --ranks 2)
tutti_add_test(NAME tools.explain_says_that_a_format_is_not_narrower LABELS tools
               COMMAND ${expect} 0 "In bf16 such messages of bfloat16 would not be shorter: they go as they are"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 1M --ranks 2 --type bfloat16 --compress bf16)
tutti_add_test(NAME tools.explain_compression LABELS tools COMMAND ${expect} 0
               "messages +error.*two_shot +Simple .* int8 +0.0086.*two_shot with Simple in int8 is chosen.*ring +Simple +in int8, int6, .*: its error is expected to be more than 0.01, or too near"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --ranks 4 --transport tcp --link 1
               --max-relative-error 0.01)
tutti_add_test(NAME tools.explain_compression_or_bound LABELS tools COMMAND ${expect} 2 "compression format int8 and a bound on the error as well"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --ranks 4 --compress int8
               --max-relative-error 0.01)
tutti_add_test(NAME tools.explain_refuses_bounds_of_other_rounding LABELS tools
               COMMAND env TUTTI_COMPRESS_ROUNDING=stochastic TUTTI_MAX_RELATIVE_ERROR=0.01 ${expect} 2 "stochastic rounding and a bound"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K --ranks 2)
tutti_add_test(NAME tools.explain_refuses_links_within_a_host LABELS tools COMMAND ${expect} 2 "--link is between hosts"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K --ranks 2 --link 1)
# A ring of 4 sends 1.5 times 16 MiB, at 0.125 GB/s.
tutti_add_test(NAME tools.explain_heeds_links_between_devices LABELS tools COMMAND ${expect} 0 "ring +Simple +2[.]0[0-9]+e[+]05"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --ranks 4 --memory cuda --transport tcp
               --link 1)
tutti_add_test(NAME tools.explain_rounds_over_slow_links_between_devices LABELS tools compression COMMAND ${expect} 0
               "on devices, between hosts.* in (int8|int6|fp8[a-z0-9_]*|mxfp8|bf16|int8_b32) is chosen"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --ranks 4 --memory cuda --transport tcp
               --link 1 --max-relative-error 0.1)
tutti_add_test(NAME tools.explain_refuses_cores_of_devices LABELS tools COMMAND ${expect} 2 "--cores are those of ranks on host memory"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K --ranks 2 --memory cuda --cores 1)
tutti_add_test(NAME tools.explain_fails_where_nothing_is_possible LABELS tools COMMAND ${expect} 1 "no communicator would make this call"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --ranks 2 --compress int8 --algorithm one_shot)
tutti_add_test(NAME tools.explain_wants LABELS tools COMMAND ${expect} 2 "explain wants --collective, --bytes and --ranks"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --ranks 2)
tutti_add_test(NAME tools.explain_topology LABELS tools COMMAND ${expect} 0
               "^all_reduce of 32 ranks, groups 8[+]8[+]8[+]8, .* on devices, between hosts.*hierarchical +Simple .*hierarchical with Simple is chosen"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --topology dgx-h100 --hosts 4)
tutti_add_test(NAME tools.explain_counts_hosts LABELS tools COMMAND ${expect} 0 "^all_reduce of 100000 ranks, groups 12500x8,"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --topology dgx-h100 --hosts 12500)
tutti_add_test(NAME tools.explain_topology_is_all LABELS tools COMMAND ${expect} 2 "--groups is of other machines: --topology"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --topology dgx-h100 --groups 4x8)
tutti_add_test(NAME tools.explain_counts_topology LABELS tools COMMAND ${expect} 2 "dgx-h100 has 16 ranks, but --ranks is 8"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 1M --topology dgx-h100 --hosts 2 --ranks 8)
set(explain $<TARGET_FILE:tutti_tool> explain --bytes 64K --ranks 4 --cores 4)
set(all_reduce $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K)
# What would have no effect, or cannot be.
function(tutti_explain_refuses name words)
  tutti_add_test(NAME tools.explain_refuses_${name} LABELS tools COMMAND ${expect} 2 ${words} ${all_reduce} ${ARGN})
endfunction()
tutti_explain_refuses(to_count_hosts_of_no_topology "--hosts counts those of a --topology" --hosts 4)
tutti_explain_refuses(hosts_for_groups "--groups say how ranks lie on hosts" --hosts 2x2)
tutti_explain_refuses(gpus_of_no_topology "--gpu says what the GPUs of a --topology are" --ranks 2 --gpu GB200)
tutti_explain_refuses(gpus_that_are_known "GPUs of dgx-h100 are H100.*do not say" --topology dgx-h100 --gpu GB200)
tutti_explain_refuses(memory_between_hosts "--transport shm is of one host, but --groups have 2" --groups 2x2 --transport shm)
tutti_explain_refuses(to_map_over_tcp "--mapped is of memory that all ranks can map" --ranks 2 --transport tcp --mapped)
tutti_explain_refuses(to_map_over_groups "--mapped is of memory that all ranks can map" --groups 2x2 --mapped)
tutti_explain_refuses(to_map_other_hosts "--mapped is of memory that all ranks can map" --topology dgx-h100 --hosts 2 --mapped)
tutti_explain_refuses(what_devices_of_several_hosts_have_not "has no results for GPUs on several hosts" --topology dgx-h100 --hosts 2
                      --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.tuned)
tutti_explain_refuses(what_devices_of_hosts_on_nvswitches_have_not "has no results for GPUs on several hosts" --topology gb200-nvl72
                      --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.tuned)
tutti_explain_refuses(a_machine_of_no_file "--machine is one of those of a --tune-file" --ranks 2 --machine EPYC)
tutti_explain_refuses(two_of_one "given twice. while reading --ranks" --ranks 2 --ranks 4)
tutti_explain_refuses(an_algorithm_without_a_name "wants a value, not ''. while reading --algorithm" --ranks 2 --algorithm=)
tutti_explain_refuses(a_topology_without_a_name "wants a value, not ''. while reading --topology" --topology=)
tutti_add_test(NAME tools.explain_says_that_nothing_was_measured LABELS tools
               COMMAND ${expect} 0 "\n[^\n]*/tools.tuned has nothing of such calls on such hosts\n[a-z_]+ with "
                       ${all_reduce} --ranks 2 --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.tuned)
tutti_add_test(NAME tools.explain_takes_one_host_over_tcp LABELS tools COMMAND ${expect} 0 "on host memory, between hosts, all on the [^\n]* of this machine\n"
               ${all_reduce} --groups 4 --transport tcp)
tutti_add_test(NAME tools.explain_heeds_what_is_forced LABELS tools COMMAND env TUTTI_ALGORITHM=ring TUTTI_PROTOCOL=Simple
               ${expect} 0 "\nTUTTI_ALGORITHM forces ring. TUTTI_PROTOCOL forces Simple.\n.*ring with Simple is chosen: nothing else"
               ${explain} --collective all_reduce)
tutti_add_test(NAME tools.explain_heeds_nccls_variables LABELS tools COMMAND env NCCL_ALGO=Ring ${expect} 0
               "\"environment\": \"NCCL_ALGO forces ring.\".*\"verdict\": \"ring with" ${explain} --collective all_gather --json)
tutti_add_test(NAME tools.explain_leaves_open_what_has_no_such_name LABELS tools COMMAND env TUTTI_ALGORITHM=two_shot
               ${expect} 0 "forces two_shot, without effect here: broadcast has none of this name.\n.* is chosen: it takes"
               ${explain} --collective broadcast)
tutti_add_test(NAME tools.explain_prefers_what_it_is_told LABELS tools COMMAND env TUTTI_ALGORITHM=rign ${expect} 0
               "\nalgorithm .*two_shot with [a-z]+ is chosen" ${explain} --collective all_reduce --algorithm two_shot)
tutti_add_test(NAME tools.explain_refuses_what_is_forced LABELS tools COMMAND env TUTTI_PROTOCOL=foo ${expect} 2
               "TUTTI_PROTOCOL is .foo., but must be one of LL" ${explain} --collective all_reduce)

if(TUTTI_HAS_FORMATS)
  set(of_unknown_gpus ${PROJECT_SOURCE_DIR}/tests/topology/files/nccl-azure-ndv4-8xA100.xml)
  tutti_explain_refuses(gpus_that_nobody_knows "name their model with --gpu" --topology ${of_unknown_gpus})
  tutti_add_test(NAME tools.explain_is_told_what_gpus_are LABELS tools COMMAND ${expect} 0 "^all_reduce of 16 ranks, .* on devices"
                 ${all_reduce} --topology ${of_unknown_gpus} --gpu A100-SXM4-40GB --hosts 2)
  tutti_add_test(NAME tools.topo_is_told_what_gpus_are LABELS tools COMMAND ${expect} 0 "gpu7, A100-SXM4-40GB, .*gpu0 +X +NV 300"
                 $<TARGET_FILE:tutti_tool> topo --file ${of_unknown_gpus} --gpu A100-SXM4-40GB)
endif()

# Four GPUs in a ring of NVLinks.
if(TUTTI_HAS_FORMATS)
  set(nodes "{\"kind\": \"numa\", \"name\": \"numa0\"}")
  set(links "")
  foreach(gpu RANGE 3)
    math(EXPR next "(${gpu} + 1) % 4")
    string(APPEND nodes ", {\"kind\": \"gpu\", \"name\": \"gpu${gpu}\", \"index\": ${gpu}, "
                        "\"bus_id\": \"0000:0${gpu}:00.0\", \"model\": \"A100-SXM4-40GB\", \"sm\": 80}")
    string(APPEND links "{\"from\": \"mesh/numa0\", \"to\": \"mesh/gpu${gpu}\", \"kind\": \"pci\", \"gbytes_per_s\": 15.8}, "
                        "{\"from\": \"mesh/gpu${gpu}\", \"to\": \"mesh/gpu${next}\", \"kind\": \"nvlink\", \"gbytes_per_s\": 25}, ")
  endforeach()
  string(REGEX REPLACE ", $" "" links "${links}")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tools.mesh.json
       "{\"format\": \"tutti topology\", \"version\": 1, \"hosts\": [{\"name\": \"mesh\", \"nodes\": [${nodes}]}], \"links\": [${links}]}")
  foreach(collective all_reduce all_gather)
    tutti_add_test(NAME tools.explain_goes_round_where_only_rings_follow_nvlinks_${collective} LABELS tools
                   COMMAND ${expect} 0 "ring with Simple is chosen" $<TARGET_FILE:tutti_tool> explain --bytes 16M
                           --collective ${collective} --topology ${CMAKE_CURRENT_BINARY_DIR}/tools.mesh.json)
  endforeach()
endif()
