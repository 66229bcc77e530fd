/* Every rank sends a small and a large message with a tag to every other rank, and receives from any rank. Ranks join
 * by the variables of their launcher. Exit status 0: all messages arrived. */
#include <stdio.h>
#include <stdlib.h>

#include "tutti/tutti.h"

enum { kSmall = 8, kLarge = 300 * 1000, kMaxRanks = 16 };

static void check(tutti_status status) {
  if (status == tutti_ok) return;
  fprintf(stderr, "%s\n", tutti_last_error(NULL));
  exit(1);
}

static void finish(tutti_request request, tutti_message* message) {
  check(tutti_request_wait(request, 60 * 1000, message));
  check(tutti_request_destroy(request));
}

/* The message from `sender` with this number of elements. */
static int32_t element(int sender, int i) { return sender * 1000 * 1000 + i; }

static void exchange(tutti_comm comm, int count) {
  int rank, ranks, peer, i;
  tutti_request sends[kMaxRanks];
  int32_t* sent = malloc((size_t)count * sizeof *sent);
  int32_t* received = malloc((size_t)count * sizeof *received);
  int seen[kMaxRanks] = {0};
  check(tutti_comm_rank(comm, &rank));
  check(tutti_comm_ranks(comm, &ranks));
  for (i = 0; i < count; ++i) sent[i] = element(rank, i);
  for (peer = 0; peer < ranks; ++peer)
    check(tutti_isend(sent, (size_t)count, tutti_int32, peer, (uint64_t)count, comm, &sends[peer]));
  for (peer = 0; peer < ranks; ++peer) {
    tutti_request request;
    tutti_message message = TUTTI_MESSAGE_DEFAULT;
    check(tutti_irecv(received, (size_t)count, tutti_int32, TUTTI_ANY_RANK, (uint64_t)count, comm, &request));
    finish(request, &message);
    for (i = 0; i < count; ++i) {
      if (received[i] == element(message.peer, i) && !seen[message.peer]) continue;
      fprintf(stderr, "rank %d received a wrong message from rank %d\n", rank, message.peer);
      exit(1);
    }
    seen[message.peer] = 1;
  }
  for (peer = 0; peer < ranks; ++peer) finish(sends[peer], NULL);
  free(sent);
  free(received);
}

int main(void) {
  tutti_comm comm;
  check(tutti_comm_create_from_environment(NULL, &comm));
  exchange(comm, kSmall);
  exchange(comm, kLarge);
  check(tutti_comm_destroy(comm));
  return 0;
}
