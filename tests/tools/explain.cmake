# Tests of the output and errors of `tutti explain`. Uses variables and functions of CMakeLists.txt.
tutti_add_test(NAME tools.explain LABELS tools COMMAND ${expect} 0
               "^all_reduce of 4 ranks, blocks of 65536 bytes[^\n]*\nchosen: two_shot/Simple .fastest. second: [a-z_]+/[A-Za-z0-9]+, [0-9.]+ us, mainly because of [a-z]+: [0-9.]+ instead of [0-9.]+ us.\n\nalgorithm [^\n]* work\ntwo_shot +Simple [^\n]*\n.*predicted = launch .*\nexcluded:\n  above [0-9]+ bytes, Simple is as fast or faster: ring/LL, .*\n  needs several hosts with several ranks each: hierarchical, hierarchical_ring"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K --ranks 4 --cores 4)
tutti_add_test(NAME tools.explain_considers_requested_ll LABELS tools COMMAND ${expect} 0
               "two_shot +LL [^\n]*\n.*excluded:\n  another protocol is forced: ring/Simple/LL128, "
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K --ranks 4 --cores 4 --protocol LL)
tutti_add_test(NAME tools.explain_json LABELS tools COMMAND ${expect} 0
               "\"algorithm\": \"hierarchical\".*\"reason\": .*\"why\": \"Simple is the only protocol between hosts\""
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --groups 4x8 --json)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tools.tuned
     "tutti-tune 2\nmachine 0.1.0, hosts 1x2, 2 ranks on 2 CPUs of some kind, shm\nclass all_gather 32\n"
     "kept direct Simple 32768 1 11.25 777.5\ntried ring Simple 65536 1 12 0\n"
     "class all_gather 32 mapped\nkept direct_mapped Simple 65536 1 9.5 555.5\ntried direct Simple 32768 1 11.25 666.5\n")
tutti_add_test(NAME tools.explain_measured LABELS tools COMMAND ${expect} 0 "direct +Simple [^\n]* 777.50*\n.*measured on 0.1.0, hosts 1x2"
               $<TARGET_FILE:tutti_tool> explain --collective all_gather --bytes 64K --ranks 2 --tune-file
               ${CMAKE_CURRENT_BINARY_DIR}/tools.tuned)
tutti_add_test(NAME tools.explain_measured_mapped LABELS tools
               COMMAND ${expect} 0 "direct_mapped +Simple [^\n]* 555.50*\n.*direct +Simple [^\n]* 666.50*\n.*measured on 0.1.0, hosts 1x2"
               $<TARGET_FILE:tutti_tool> explain --collective all_gather --bytes 64K --ranks 2 --cores 2 --mapped --tune-file
               ${CMAKE_CURRENT_BINARY_DIR}/tools.tuned)
# Tune files with several machines, and with devices.
set(class "class all_reduce 32\nkept ring Simple 65536 4 11 1.5\ntried two_shot Simple 32768 4 5")
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tools.machines
     "tutti-tune 2\nmachine 0.1.0, hosts 1x2, 1 rank on 1 CPU of some kind, shm\n${class} 111.5\n"
     "machine 0.1.0, hosts 1x2, 2 ranks on 1 CPU of some kind, shm\n${class} 222.5\n"
     "machine 0.1.0, 8 ranks on NVIDIA H100 each, 32 thread blocks, links NV 450 GB/s\n${class} 333.5\n"
     "class all_reduce 32 mapped\nkept two_shot_mapped Simple 65536 4 11 777.5\n"
     "machine 0.1.0, 8 ranks on NVIDIA H100 each, 32 thread blocks, links 16 NV 100 GB/s and 12 SYS, laid out as 01234567\n${class} 444.5\n"
     "machine 0.1.0, hosts 1x2, 2 CPUs of some kind, no transport asked for\n${class} 555.5\n"
     "machine 0.1.0, 2 ranks on NVIDIA H100 each, 32 thread blocks\n${class} 666.5\n")
function(tutti_test_explain_machines name pattern)
  tutti_add_test(NAME tools.explain_machines_${name} LABELS tools COMMAND env -u TUTTI_ALGORITHM ${expect} 0 "${pattern}"
                 $<TARGET_FILE:tutti_tool> explain --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.machines --collective all_reduce
                 --bytes 64K ${ARGN})
endfunction()
tutti_test_explain_machines(are_listed "two_shot +Simple [^\n]* 222.50*\n.*measured on [^\n]*, 2 ranks on 1 CPU [^\n]*\nalso measured on [^\n]*, 1 rank on 1 CPU [^\n]* .--machine selects it.\nexcluded"
                       --ranks 2)
tutti_test_explain_machines(can_be_named "\nchosen with TUTTI_TUNE=1: ring.*two_shot +Simple [^\n]* 111.50*\n.*measured on [^\n]*, 1 rank on 1 CPU [^\n]*\nexcluded"
                       --ranks 2 --machine ", 1 rank on")
tutti_test_explain_machines(match_number_of_cores "two_shot +Simple [^\n]* 222.50*\n.*measured on [^\n]*, 2 ranks on 1 CPU [^\n]*\nexcluded"
                       --ranks 2 --cores 1)
# Machines with 3 threads, and with all or some ranks bound to a core each.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tools.shared
     "tutti-tune 2\nmachine 0.1.0, hosts 1x3, 3 ranks in a process on 2 CPUs of some kind, shm\n${class} 111.5\n"
     "machine 0.1.0, hosts 1x3, 1 rank on 1 CPU of some kind, shm\n${class} 222.5\n"
     "machine 0.1.0, hosts 1x3, 1 rank on 1 CPU and 2 ranks on 5 CPUs of some kind, shm\n${class} 333.5\n")
foreach(case 2:111.5:threads 3:222.5:bound_ranks)
  string(REPLACE ":" ";" case ${case})
  list(POP_FRONT case cores measured whose)
  tutti_add_test(NAME tools.explain_machines_match_cores_of_${whose} LABELS tools
                 COMMAND env -u TUTTI_ALGORITHM ${expect} 0 "two_shot +Simple [^\n]* ${measured}0*\n.*measured on [^\n]*\nexcluded"
                         $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K --ranks 3 --cores ${cores}
                         --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.shared)
endforeach()
tutti_test_explain_machines(of_devices "GPUs\nchosen with TUTTI_TUNE=1: ring/Simple .measured 1.50* us. two_shot/Simple 444.50* us.\nchosen: [^\n]*, without TUTTI_TUNE\n.*two_shot +Simple [^\n]* 444.50*\n.*measured on [^\n]*NV 100 GB/s[^\n]*\nalso measured on [^\n]*NV 450 GB/s .--machine selects it.\n"
                       --ranks 8 --memory cuda)
tutti_test_explain_machines(of_devices_can_be_named "\nchosen with TUTTI_TUNE=1: .*two_shot +Simple [^\n]* 333.50*\n.*measured on [^\n]*NV 450 GB/s\nexcluded" --ranks 8 --memory cuda
                       --machine "links NV 450")
tutti_test_explain_machines(of_devices_match_links "\nchosen with TUTTI_TUNE=1: .*two_shot +Simple [^\n]* 333.50*\n.*measured on [^\n]*NV 450 GB/s\nexcluded" --topology dgx-h100)
tutti_test_explain_machines(of_devices_named_despite_their_links "\nchosen with TUTTI_TUNE=1: .*two_shot +Simple [^\n]* 444.50*\n.*measured on [^\n]*laid out as 01234567\nexcluded"
                       --topology dgx-h100 --machine "laid out")
if(TUTTI_HAS_FORMATS)
  # The driver's numbers order the ranks, so NVLinks connect ranks 0 and 2, and ranks 1 and 3.
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
  set(pairs "machine 0.1.0, 4 ranks on NVIDIA A100 each, 32 thread blocks, links 2 NV 100 GB/s and 4 PHB, laid out as")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tools.pairs "tutti-tune 2\n${pairs} 205ee5bc\n${class} 111.5\n${pairs} 41fef03c\n${class} 222.5\n")
  tutti_add_test(NAME tools.explain_machines_of_devices_by_number LABELS tools
                 COMMAND env -u TUTTI_ALGORITHM ${expect} 0 "\nchosen with TUTTI_TUNE=1: .*two_shot +Simple [^\n]* 111.50*\n.*measured on [^\n]* 205ee5bc\nexcluded"
                         $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K
                         --topology ${CMAKE_CURRENT_BINARY_DIR}/tools.pairs.xml --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.pairs)
endif()
tutti_test_explain_machines(of_devices_in_windows "\nchosen( with TUTTI_TUNE=1)?: two_shot_mapped/Simple .*two_shot_mapped +Simple [^\n]* 777.50*\n"
                       --ranks 8 --memory cuda --mapped)
tutti_test_explain_machines(of_devices_of_earlier_versions_are_ignored "/tools.machines has no times for these calls on these GPUs\n" --ranks 2 --memory cuda)
tutti_test_explain_machines(of_devices_are_not_for_host_memory "/tools.machines has no times for these calls on these hosts\n" --ranks 8)
tutti_test_explain_machines(in_json "\"measured_us\": 444.5.*\"measured_on\": \"[^\"]*NV 100 GB/s[^\"]*\",\n\"also_measured_on\": \\[\"[^\"]*NV 450 GB/s\"\\],\n\"reason\": \"chosen with TUTTI_TUNE=1: ring/Simple .*.chosen: "
                       --ranks 8 --memory cuda --json)
# Saved results that communicators would apply.
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
function(tutti_test_explain_saved name pattern)
  set(cores --cores 4)
  if("--link" IN_LIST ARGN)  # The machine is not this one, so --cores is invalid.
    set(cores "")
  endif()
  tutti_add_test(NAME tools.explain_saved_${name} LABELS tools COMMAND env -u TUTTI_ALGORITHM ${expect} 0 "${pattern}"
                 $<TARGET_FILE:tutti_tool> explain --ranks 4 ${cores} --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.kept --collective ${ARGN})
endfunction()
tutti_test_explain_saved(is_chosen "\nchosen with TUTTI_TUNE=1: one_shot/Simple .measured 1.50* us. two_shot/Simple 9.50* us.\nchosen: two_shot/Simple .*, without TUTTI_TUNE\n"
                   all_reduce --bytes 64K)
tutti_test_explain_saved(need_not_be_the_fastest "\nchosen with TUTTI_TUNE=1: one_shot/Simple .measured 1.50* us. two_shot/Simple 1.490* us. the first choice is replaced only by one that is 1 % faster in total and faster in 75 % of the rounds.\nchosen: "
                   all_reduce --bytes 2M)
tutti_test_explain_saved(of_its_class "\nchosen: two_shot/Simple [^\n]*\nchosen with TUTTI_TUNE=1: the same .measured 4.50* us. one_shot/Simple 8.50* us"
                   all_reduce --bytes 128K)
tutti_test_explain_saved(has_no_effect_unless_it_is_a_candidate "\nchosen: [a-z_]+/Simple .fastest. second: [^\n]*us.\n\n.*ring +Simple [^\n]* 8.50*\n.*\nmeasured on "
                   all_reduce --bytes 256K)
tutti_test_explain_saved(has_no_effect_on_forced_options "\nchosen: one_shot/Simple .the only candidate.\n\n"
                   all_reduce --bytes 64K --algorithm one_shot)
tutti_test_explain_saved(has_no_effect_with_another_protocol "\nchosen: two_shot/Simple .fastest. second: [^\n]*us.\n\n" all_reduce --bytes 512K)
tutti_add_test(NAME tools.explain_saved_has_no_effect_with_name_of_other_collectives LABELS tools
               COMMAND env TUTTI_ALGORITHM=two_shot ${expect} 0 "has no effect here[^\n]*\nchosen: [a-z_]+/Simple .fastest. second: [^\n]*us.\n\n"
                       $<TARGET_FILE:tutti_tool> explain --ranks 4 --cores 4 --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.kept
                       --collective all_gather --bytes 64K)
tutti_test_explain_saved(has_no_effect_with_compression "\nchosen: [a-z_]+/Simple/int8 .fastest. second: [^\n]*us.\n\n.*\ntwo_shot +Simple [^\n]* int8 .*\n[^\n]*/tools.kept has no times for these candidates\n"
                   all_reduce --bytes 64K --compress int8)
tutti_test_explain_saved(is_uncompressed_within_error_bound "\nchosen with TUTTI_TUNE=1: one_shot/Simple .*\none_shot +Simple [^\n]* 1.50* +raw .*\ntwo_shot +Simple [^\n]* - +int8 "
                   all_reduce --bytes 64K --max-relative-error 0.05 --type bfloat16)
tutti_test_explain_saved(predicts_compressed_candidates "\nchosen: [a-z_]+/Simple/[a-z0-9_]+ .fastest. second: [^\n]*us.\n\n.*\ntwo_shot +Simple [^\n]* - +int8 .*\ntwo_shot +Simple [^\n]* 6.50* +raw "
                   all_reduce --bytes 1M --transport tcp --link 1 --max-relative-error 0.05)
tutti_test_explain_saved(of_its_transport "chosen with TUTTI_TUNE=1: ring/Simple .measured 5.50* us. two_shot/Simple 6.50* us"
                   all_reduce --bytes 1M --transport tcp --link 1)
tutti_add_test(NAME tools.explain_saved_results_depend_on_transport LABELS tools
               COMMAND env TUTTI_TRANSPORT=tcp ${expect} 0 "\nchosen with TUTTI_TUNE=1: ring/Simple .measured 5.50* us. two_shot/Simple 6.50* us"
                       $<TARGET_FILE:tutti_tool> explain --groups 2x2 --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.kept
                       --collective all_reduce --bytes 1M)
tutti_test_explain_saved(of_lanes_applies_to_lanes "chosen with TUTTI_TUNE=1: ring/Simple .measured 2.50* us.\nchosen: " all_gather --bytes 64K)
tutti_test_explain_saved(of_lanes_applies_to_all_when_mapped_memory_lost "chosen with TUTTI_TUNE=1: ring/Simple .measured 2.50* us.\nchosen: direct_mapped"
                   all_gather --bytes 64K --mapped)
tutti_test_explain_saved(when_mapped_memory_lost_applies_to_lanes "\nchosen: direct/Simple [^\n]*\nchosen with TUTTI_TUNE=1: the same .measured 3.50* us" all_gather --bytes 128K)
tutti_test_explain_saved(of_mapped_applies_to_mapped "\nchosen: direct_mapped/Simple [^\n]*\nchosen with TUTTI_TUNE=1: the same .measured 5.50* us" all_gather --bytes 256K --mapped)
tutti_test_explain_saved(of_lanes_does_not_apply_to_mapped "\nchosen: [a-z_]+_mapped/Simple .fastest. second: [^\n]*us.\n\n"
                   all_gather --bytes 512K --mapped)
tutti_add_test(NAME tools.explain_accepts_matching_groups LABELS tools
               COMMAND ${expect} 0 "^all_reduce of 524288 ranks, groups 65536x8"
                       $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 1M --groups 65536x8)
tutti_add_test(NAME tools.explain_reports_missing_tune_file LABELS tools
               COMMAND ${expect} 1 "open '/nonexistent/tuned' of --tune-file: No such file"
               $<TARGET_FILE:tutti_tool> explain --collective all_gather --bytes 64K --ranks 2 --tune-file /nonexistent/tuned)
tutti_add_test(NAME tools.explain_accepts_missing_tune_file_of_environment LABELS tools
               COMMAND env TUTTI_TUNE_FILE=/nonexistent/tuned ${expect} 0 "\nchosen: "
               $<TARGET_FILE:tutti_tool> explain --collective all_gather --bytes 64K --ranks 2)
tutti_add_test(NAME tools.explain_reports_format_that_saves_nothing LABELS tools
               COMMAND ${expect} 0 "Not compressed: bf16 would not shorten messages of bfloat16"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 1M --ranks 2 --type bfloat16 --compress bf16)
tutti_add_test(NAME tools.explain_compression LABELS tools COMMAND ${expect} 0
               "chosen: two_shot/Simple/int8 .*messages +error\n.*two_shot +Simple .* int8 +0.0086.*expected error above 0.01 or close to it: ring/Simple .int8, int6, "
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --ranks 4 --transport tcp --link 1
               --max-relative-error 0.01)
tutti_add_test(NAME tools.explain_compression_or_bound LABELS tools COMMAND ${expect} 2 "compression format int8 and a bound on the error are both set"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --ranks 4 --compress int8
               --max-relative-error 0.01)
tutti_add_test(NAME tools.explain_rejects_bounds_with_stochastic_rounding LABELS tools
               COMMAND env TUTTI_COMPRESS_ROUNDING=stochastic TUTTI_MAX_RELATIVE_ERROR=0.01 ${expect} 2 "stochastic rounding and a bound"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K --ranks 2)
tutti_add_test(NAME tools.explain_rejects_links_within_host LABELS tools COMMAND ${expect} 2 "--link needs several hosts"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K --ranks 2 --link 1)
# A ring of 4 ranks sends 1.5 times 16 MiB, at 0.125 GB/s.
tutti_add_test(NAME tools.explain_applies_links_between_devices LABELS tools COMMAND ${expect} 0 "ring +Simple +20[0-9][0-9][0-9][0-9][.][0-9] "
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --ranks 4 --memory cuda --transport tcp
               --link 1)
tutti_add_test(NAME tools.explain_compresses_over_slow_links_between_devices LABELS tools compression COMMAND ${expect} 0
               "GPUs, between hosts\nchosen: [a-z_]+/Simple/(int8|int6|fp8[a-z0-9_]*|mxfp8|bf16|int8_b32) "
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --ranks 4 --memory cuda --transport tcp
               --link 1 --max-relative-error 0.1)
tutti_add_test(NAME tools.explain_rejects_cores_with_gpus LABELS tools COMMAND ${expect} 2 "--cores applies to host memory"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K --ranks 2 --memory cuda --cores 1)
tutti_add_test(NAME tools.explain_fails_without_candidates LABELS tools COMMAND ${expect} 1 "no algorithm satisfies these options\n.*ranks would end with different bits under compression: one_shot"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --ranks 2 --compress int8 --algorithm one_shot)
tutti_add_test(NAME tools.explain_requires_options LABELS tools COMMAND ${expect} 2 "tutti explain needs --bytes and one of --ranks"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --ranks 2)
tutti_add_test(NAME tools.explain_topology LABELS tools COMMAND ${expect} 0
               "^all_reduce of 32 ranks, groups 8[+]8[+]8[+]8, .* GPUs, between hosts\nchosen: host_staged/Simple .*hierarchical +Simple "
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --topology dgx-h100 --hosts 4)
tutti_add_test(NAME tools.explain_counts_hosts LABELS tools COMMAND ${expect} 0 "^all_reduce of 100000 ranks, groups 12500x8,"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --topology dgx-h100 --hosts 12500)
tutti_add_test(NAME tools.explain_topology_is_all LABELS tools COMMAND ${expect} 2 "--groups and --topology exclude each other"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 16M --topology dgx-h100 --groups 4x8)
tutti_add_test(NAME tools.explain_counts_topology LABELS tools COMMAND ${expect} 2 "dgx-h100 has 16 ranks, but --ranks is 8"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 1M --topology dgx-h100 --hosts 2 --ranks 8)
set(explain $<TARGET_FILE:tutti_tool> explain --bytes 64K --ranks 4 --cores 4)
set(all_reduce $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 64K)
# Invalid options and options without effect are errors.
function(tutti_explain_rejects name words)
  tutti_add_test(NAME tools.explain_rejects_${name} LABELS tools COMMAND ${expect} 2 ${words} ${all_reduce} ${ARGN})
endfunction()
tutti_explain_rejects(hosts_without_topology "--hosts needs --topology" --hosts 4)
tutti_explain_rejects(hosts_as_groups "--groups places ranks on hosts" --hosts 2x2)
tutti_explain_rejects(gpus_without_topology "--gpu needs --topology" --ranks 2 --gpu GB200)
tutti_explain_rejects(gpus_of_known_model "--gpu: the GPUs of dgx-h100 are H100.*do not name the model" --topology dgx-h100 --gpu GB200)
tutti_explain_rejects(link_without_bandwidth "--link 0: must be a bandwidth .*, or a number of Gbit/s" --groups 2x4 --link 0)
tutti_explain_rejects(memory_between_hosts "--transport shm works within one host, but --groups has 2 hosts" --groups 2x2 --transport shm)
tutti_explain_rejects(mapped_over_tcp "--mapped needs ranks on one host" --ranks 2 --transport tcp --mapped)
tutti_explain_rejects(mapped_over_groups "--mapped needs ranks on one host" --groups 2x2 --mapped)
tutti_explain_rejects(mapped_on_other_hosts "--mapped needs ranks on one host" --topology dgx-h100 --hosts 2 --mapped)
tutti_explain_rejects(tune_file_with_gpus_of_several_hosts "calls between GPUs of several hosts are not autotuned" --topology dgx-h100 --hosts 2
                      --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.tuned)
tutti_explain_rejects(tune_file_with_hosts_on_nvswitches "calls between GPUs of several hosts are not autotuned" --topology gb200-nvl72
                      --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.tuned)
tutti_explain_rejects(nvlink_domain_without_topology "--nvlink-domain needs --topology" --ranks 2 --nvlink-domain 2)
tutti_explain_rejects(nvlink_domain_that_does_not_fit "2 hosts per NVLink domain: must divide the 3 hosts" --topology dgx-h100 --hosts 3
                      --nvlink-domain 2)
tutti_explain_rejects(machine_without_tune_file "--machine needs --tune-file" --ranks 2 --machine EPYC)
tutti_explain_rejects(unknown_machine "--machine: no machine in [^\n]*tools.tuned has .EPYC. in its name. the file has 0.1.0, hosts 1x2"
                      --ranks 2 --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.tuned --machine EPYC)
tutti_explain_rejects(repeated_options "--ranks is given twice" --ranks 2 --ranks 4)
tutti_explain_rejects(empty_algorithm "--algorithm: the value is empty" --ranks 2 --algorithm=)
tutti_explain_rejects(empty_topology "--topology: the value is empty" --topology=)
set(compare --topology dgx-h100 --compare nccl)
tutti_add_test(NAME tools.explain_rejects_invalid_range LABELS tools COMMAND ${expect} 2 "--bytes 4G..8: range must begin with the smaller size"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 4G..8 --topology dgx-h100)
tutti_add_test(NAME tools.explain_marks_choices_that_are_not_the_fastest LABELS tools COMMAND ${expect} 0
               " 65536 +two_shot +LL +16 +[0-9.]+[*] [^\n]*\n +131072 +two_shot +LL +24 +[0-9.]+  .*\n[*] The choice is not the fastest [^\n]*\n +65536 +one_shot +LL +[^\n]*\n[^ ]"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --topology dgx-h100 --bytes 64K..128K)
tutti_add_test(NAME tools.explain_says_that_ll128_is_rejected_between_hosts LABELS tools COMMAND ${expect} 1
               "\nTutti rejects such calls: lanes between hosts have no LL128, but LL128 is forced .*excluded:\n"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --topology dgx-h100 --hosts 2 --bytes 1M --protocol LL128)
tutti_add_test(NAME tools.explain_says_that_ll_is_rejected_in_tables LABELS tools COMMAND ${expect} 1
               "^tutti: Tutti rejects such calls: LL between hosts is for host_one_shot [^\n]*, but LL is forced"
               $<TARGET_FILE:tutti_tool> explain --collective all_to_all --topology dgx-h100 --hosts 2 --bytes 1M..2M --protocol LL)
tutti_add_test(NAME tools.explain_permits_ll_for_sums_between_hosts LABELS tools COMMAND ${expect} 0
               "chosen: host_one_shot/LL .*LL between hosts is for host_one_shot [^:]*:[^a-z]*ring/LL"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --topology dgx-h100 --hosts 2 --bytes 1M --protocol LL)
tutti_add_test(NAME tools.explain_rejects_range_without_topology LABELS tools COMMAND ${expect} 2 "ranges of --bytes need --topology, such as dgx-h100"
               $<TARGET_FILE:tutti_tool> explain --collective all_reduce --bytes 8..4G --ranks 8)
tutti_explain_rejects(unknown_library "--compare foo: must be nccl" --topology dgx-h100 --compare foo)
tutti_explain_rejects(comparison_without_topology "--compare and ranges of --bytes need --topology" --ranks 8 --compare nccl)
tutti_explain_rejects(comparison_with_compression "are for calls without compression: omit --compress" ${compare} --compress int8)
tutti_explain_rejects(comparison_with_tune_file "--tune-file is for one size, without --compare" ${compare}
                      --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.tuned)
tutti_add_test(NAME tools.explain_comparison_reports_excluded_choices LABELS tools COMMAND ${expect} 1 "no algorithm satisfies these options. give one size"
               ${all_reduce} ${compare} --algorithm two_shot_mapped)
tutti_add_test(NAME tools.explain_compares LABELS tools COMMAND ${expect} 0
               "^all_reduce of 8 ranks on dgx-h100, private buffers, calls in a graph
No time between GPUs was measured: Tutti has run on one GPU that several ranks shared.

 +bytes [^
]* NCCL +bus GB/s +ratio
 +65536  two_shot +LL +16 +[0-9.]+[*] +[0-9.]+ +19.9 .1. +[0-9.]+ +[0-9.]+
.*.1. github.com/sgl-project/.*  system fence +1 us +github.com/.*"
               ${all_reduce} ${compare})
tutti_add_test(NAME tools.explain_range LABELS tools COMMAND ${expect} 0
               "^all_gather of 16 ranks, groups 8[+]8 on dgx-h100, private buffers, calls in a graph
No time between GPUs was measured: Tutti has run on one GPU that several ranks shared.
Sizes are blocks. nccl-tests count 16 times as much.

 +bytes [^
]* bus GB/s
 +8  [^
]*
 +16  [^
]*
 +32  [^
]*
Times in us.* not validated"
               $<TARGET_FILE:tutti_tool> explain --collective all_gather --bytes 8..32 --topology dgx-h100 --hosts 2)
tutti_add_test(NAME tools.explain_reports_missing_measurements LABELS tools
               COMMAND ${expect} 0 "\n[^\n]*/tools.tuned has no times for these calls on these hosts\nexcluded"
                       ${all_reduce} --ranks 2 --tune-file ${CMAKE_CURRENT_BINARY_DIR}/tools.tuned)
tutti_add_test(NAME tools.explain_accepts_one_host_over_tcp LABELS tools COMMAND ${expect} 0 "host memory, between hosts, [^\n]* .this machine. shared by all ranks\n"
               ${all_reduce} --groups 4 --transport tcp)
tutti_add_test(NAME tools.explain_applies_forced_algorithm LABELS tools COMMAND env TUTTI_ALGORITHM=ring TUTTI_PROTOCOL=Simple
               ${expect} 0 "\nTUTTI_ALGORITHM forces ring. TUTTI_PROTOCOL forces Simple.\nchosen: ring/Simple .the only candidate"
               ${explain} --collective all_reduce)
tutti_add_test(NAME tools.explain_applies_nccl_variables LABELS tools COMMAND env NCCL_ALGO=Ring ${expect} 0
               "\"environment\": \"NCCL_ALGO forces ring.\".*\"reason\": \"chosen: ring/" ${explain} --collective all_gather --json)
tutti_add_test(NAME tools.explain_ignores_unknown_nccl_names LABELS tools COMMAND env TUTTI_ALGORITHM=two_shot
               ${expect} 0 "TUTTI_ALGORITHM=two_shot has no effect here: broadcast has no algorithm of this name.\nchosen: "
               ${explain} --collective broadcast)
tutti_add_test(NAME tools.explain_prefers_options LABELS tools COMMAND env TUTTI_ALGORITHM=rign ${expect} 0
               "\nchosen: two_shot/[A-Za-z0-9]+ " ${explain} --collective all_reduce --algorithm two_shot)
tutti_add_test(NAME tools.explain_rejects_forced_options LABELS tools COMMAND env TUTTI_PROTOCOL=foo ${expect} 2
               "TUTTI_PROTOCOL is .foo.: must be one of LL" ${explain} --collective all_reduce)

if(TUTTI_HAS_FORMATS)
  set(of_unknown_gpus ${PROJECT_SOURCE_DIR}/tests/topology/files/nccl-azure-ndv4-8xA100.xml)
  tutti_explain_rejects(unknown_gpus "GPU model unknown. pass --gpu MODEL" --topology ${of_unknown_gpus})
  tutti_add_test(NAME tools.explain_accepts_gpu_model LABELS tools COMMAND ${expect} 0 "^all_reduce of 16 ranks, [^\n]* GPUs"
                 ${all_reduce} --topology ${of_unknown_gpus} --gpu A100-SXM4-40GB --hosts 2)
  tutti_add_test(NAME tools.topo_accepts_gpu_model LABELS tools COMMAND ${expect} 0 "gpu7, A100-SXM4-40GB, .*gpu0 +X +NV 300"
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
    tutti_add_test(NAME tools.explain_chooses_ring_when_only_rings_follow_nvlinks_${collective} LABELS tools
                   COMMAND ${expect} 0 "chosen: ring/Simple " $<TARGET_FILE:tutti_tool> explain --bytes 16M
                           --collective ${collective} --topology ${CMAKE_CURRENT_BINARY_DIR}/tools.mesh.json)
  endforeach()
endif()
