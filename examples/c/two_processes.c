/* Two processes add their vectors. One makes the id of the communicator; the other has it by fork. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tutti/tutti.h>

enum { kRanks = 2, kCount = 1000 };

static void check(tutti_status status) {
  if (status == tutti_ok) return;
  fprintf(stderr, "%s: %s\n", tutti_status_name(status), tutti_last_error(NULL));
  exit(1);
}

static int run(const tutti_unique_id* id, int rank) {
  static float values[kCount];
  for (int i = 0; i < kCount; ++i) values[i] = (float)(rank + 1) * (float)i;

  tutti_comm comm;
  check(tutti_comm_create(id, rank, kRanks, NULL, &comm));
  check(tutti_all_reduce(values, values, kCount, tutti_float32, tutti_sum, comm, NULL));
  check(tutti_comm_destroy(comm));

  for (int i = 0; i < kCount; ++i) {
    if (values[i] != 3.0f * (float)i) {
      fprintf(stderr, "rank %d: element %d is %g\n", rank, i, (double)values[i]);
      return 1;
    }
  }
  printf("rank %d of %d: the sum is right\n", rank, kRanks);
  return 0;
}

int main(void) {
  tutti_unique_id id;
  check(tutti_get_unique_id(&id));

  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) return run(&id, 1);

  const int mine = run(&id, 0);
  int theirs = 1;
  waitpid(child, &theirs, 0);
  return mine || theirs ? 1 : 0;
}
