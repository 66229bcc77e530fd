# Tests of the output and errors of `tutti estimate`. Uses variables of CMakeLists.txt.
if(Python3_FOUND)
  tutti_add_test(NAME tools.estimate_predicts_steps LABELS tools
                 COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/estimate_test.py $<TARGET_FILE:tutti_tool>)
endif()
set(estimate $<TARGET_FILE:tutti_tool> estimate)
set(estimate_step ${estimate} --parameters 25M --compute 300ms)
tutti_add_test(NAME tools.estimate LABELS tools COMMAND ${expect} 0
               "^25000000 gradients of float32 .100 MB. in 4 buckets, 4 ranks with links of 10 Gbit/s\n.*sent per rank +150 MB\ncomputation +300 ms\ncommunication +120 ms   two_shot/Simple\n.*scaling efficiency +92[.]. %.*\nsingle change .*\nAssumptions:\n  [^\n]* 10 us each way"
               ${estimate_step} --ranks 4 --link 10Gbit)
tutti_add_test(NAME tools.estimate_topology LABELS tools COMMAND ${expect} 0
               "^25000000 gradients of float32 .100 MB. in 4 buckets, 16 ranks on dgx-h100\n.*Times of several hosts are not validated"
               ${estimate_step} --topology dgx-h100 --hosts 2)
tutti_add_test(NAME tools.estimate_names_work_as_limit LABELS tools COMMAND ${expect} 0 "Assumptions:.*the work of a rank .copies, sums, messages. takes longer than the transfer"
               ${estimate_step} --ranks 4 --link 100Gbit)
tutti_add_test(NAME tools.estimate_names_no_limit_of_slow_links LABELS tools COMMAND ${expect} 1 "nothing matches the work of a rank"
               ${expect} 0 "the work of a rank" ${estimate_step} --ranks 4 --link 10Gbit)
function(tutti_estimate_rejects name words)
  tutti_add_test(NAME tools.estimate_rejects_${name} LABELS tools COMMAND ${expect} 2 "^tutti: ${words}" ${ARGN})
endfunction()
set(here --ranks 4 --link 10Gbit)
tutti_estimate_rejects(missing_options "tutti estimate needs --parameters, --compute, and either --ranks and --link or --topology"
                       ${estimate} ${here} --parameters 25M)
tutti_estimate_rejects(ranks_without_link "tutti estimate needs" ${estimate_step} --ranks 4)
tutti_estimate_rejects(no_ranks "--ranks 0: must be from 2 to 1000000$" ${estimate_step} --ranks 0 --link 10Gbit)
tutti_estimate_rejects(link_without_unit "--link 10: must be a bandwidth .* with its unit, such as 10Gbit$" ${estimate_step} --ranks 4 --link 10)
tutti_estimate_rejects(compute_without_unit "--compute 300: must be a time .* with its unit, such as 300ms$"
                       ${estimate} --parameters 25M ${here} --compute 300)
tutti_estimate_rejects(unknown_parameters "--parameters many: must be a number of parameters from 1 to 1e13"
                       ${estimate} --parameters many --compute 300ms ${here})
tutti_estimate_rejects(unknown_type "--type: unknown type 'fp16' of gradients: must be one of float64, float32, float16, "
                       ${estimate_step} ${here} --type fp16)
tutti_estimate_rejects(unknown_format "--compress: [^\n]*'int7'" ${estimate_step} ${here} --compress int7)
tutti_estimate_rejects(compressed_type "--compress applies to float32, float16 and bfloat16, not to float64"
                       ${estimate_step} ${here} --type float64 --compress int8)
tutti_estimate_rejects(format_that_saves_nothing "--compress bf16 would not shorten messages of float16"
                       ${estimate_step} ${here} --type float16 --compress bf16)
tutti_estimate_rejects(overlap_without_unit "--overlap 0.5: must be from 0% to 100%, such as 50%" ${estimate_step} ${here} --overlap 0.5)
tutti_estimate_rejects(tiny_buckets "buckets of 8 bytes: there would be more than 1000000 buckets. use a larger --bucket$"
                       ${estimate_step} ${here} --bucket 8)
tutti_estimate_rejects(buckets_below_an_element "buckets of 2 bytes: " ${estimate_step} ${here} --bucket 2)
tutti_estimate_rejects(link_of_topology "--link and --topology exclude each other" ${estimate_step} --topology dgx-h100 --link 10Gbit)
tutti_estimate_rejects(hosts_without_topology "--hosts needs --topology" ${estimate_step} ${here} --hosts 2)
tutti_estimate_rejects(ranks_of_topology "dgx-h100 has 8 ranks, but --ranks is 4$" ${estimate_step} --topology dgx-h100 --ranks 4)
tutti_estimate_rejects(unknown_topology "[^\n]*no file has this name, either$" ${estimate_step} --topology nowhere)
