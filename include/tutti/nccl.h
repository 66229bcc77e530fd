/* Options of Tutti's libnccl.so.2 for single collectives: entries of the list ncclCollConfig_t.ext (NCCL 2.31 or
 * newer), which NVIDIA's library ignores. Guide: docs/guide/nccl-compatibility.md.
 *   key.vendorId: TUTTI_NCCL_VENDOR_ID.
 *   val.s: the value, a text.
 *   Errors: an unknown option, an invalid value, or an option that occurs twice is ncclInvalidArgument. */
#ifndef TUTTI_NCCL_H
#define TUTTI_NCCL_H

#define TUTTI_NCCL_VENDOR_ID 0x9c41e7

/* Values of key.optionId. The first two exclude each other, and must match on all ranks.
 *   TUTTI_NCCL_COMPRESSION: format, as in tutti_comm_options.compression: "int8", "raw" (none), ...
 *   TUTTI_NCCL_MAX_RELATIVE_ERROR: bound on the expected relative error, above 0 and below 1, such as "0.01".
 *   TUTTI_NCCL_COMPRESSION_ROUNDING: rounding of compressed values, "nearest" or "stochastic". */
#define TUTTI_NCCL_COMPRESSION 1
#define TUTTI_NCCL_MAX_RELATIVE_ERROR 2
#define TUTTI_NCCL_COMPRESSION_ROUNDING 3

#endif
