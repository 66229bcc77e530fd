/* Adds the vectors of all GPUs, each of which belongs to one process, in a CUDA stream. Start it with a launcher:
 *   torchrun --no-python --nproc-per-node 8 build-cuda/process_per_gpu */
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime.h>
#include <tutti/tutti.h>

enum { kCount = 1 << 16 };

static void check(tutti_status status) {
  if (status == tutti_ok) return;
  fprintf(stderr, "%s: %s\n", tutti_status_name(status), tutti_last_error(NULL));
  exit(1);
}

static void check_cuda(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  exit(1);
}

/* Returns the number of this process on its host, as torchrun, Open MPI, MPICH or Slurm gives it. */
static int local_rank(void) {
  const char* const names[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    const char* const text = getenv(names[i]);
    if (text != NULL) return atoi(text);
  }
  return 0;
}

int main(void) {
  int devices = 0;
  check_cuda(cudaGetDeviceCount(&devices));
  check_cuda(cudaSetDevice(local_rank() % devices));

  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.memory = "cuda"; /* The current GPU. */
  tutti_comm comm = NULL;
  check(tutti_comm_create_from_environment(&options, &comm));
  int rank = 0;
  int ranks = 0;
  check(tutti_comm_rank(comm, &rank));
  check(tutti_comm_ranks(comm, &ranks));

  float* const values = malloc(kCount * sizeof *values);
  if (values == NULL) return 1;
  for (int i = 0; i < kCount; ++i) values[i] = (float)(rank + 1);
  float* buffer = NULL;
  cudaStream_t stream = NULL;
  check_cuda(cudaMalloc((void**)&buffer, kCount * sizeof *values));
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  /* The call returns when it is enqueued. It runs after the copy to the GPU and before the copy back. */
  check_cuda(cudaMemcpyAsync(buffer, values, kCount * sizeof *values, cudaMemcpyHostToDevice, stream));
  check(tutti_all_reduce(buffer, buffer, kCount, tutti_float32, tutti_sum, comm, (tutti_stream)stream));
  check_cuda(cudaMemcpyAsync(values, buffer, kCount * sizeof *values, cudaMemcpyDeviceToHost, stream));
  check(tutti_comm_synchronize(comm)); /* Returns the error of a call that failed in the stream. */
  check_cuda(cudaStreamSynchronize(stream));

  const float sum = (float)ranks * (float)(ranks + 1) / 2;
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) wrong += values[i] != sum;
  printf("rank %d of %d: %s\n", rank, ranks, wrong == 0 ? "the sum is right" : "the sum is wrong");

  check(tutti_comm_destroy(comm));
  check_cuda(cudaStreamDestroy(stream));
  check_cuda(cudaFree(buffer));
  free(values);
  return wrong == 0 ? 0 : 1;
}
