"""Runs functions of tests as ranks: each rank is a process, or each is a thread of this process."""

import importlib.util
import os
import pickle
import signal
import subprocess
import sys
import threading

import tutti

TIMEOUT_S = 120  # Turns a hang into a failure.


def processes(function, ranks, *arguments, **environment):
    """Calls function(*arguments) in `ranks` processes. Returns the list of their results.

    Raises AssertionError if a process fails. A process that a signal kills has the result ("killed", signal).
    """
    path = sys.modules[function.__module__].__file__
    call = pickle.dumps((function.__name__, arguments)).hex()
    children = []
    for rank in range(ranks):
        variables = {**os.environ, "TUTTI_TIMEOUT_MS": "60000", **environment, "TUTTI_RANK": str(rank),
                     "TUTTI_RANKS": str(ranks)}
        children.append(subprocess.Popen([sys.executable, __file__, path, call], env=variables, stdout=subprocess.PIPE))
    try:
        outputs = [child.communicate(timeout=TIMEOUT_S)[0] for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()
    results = []
    for rank, (child, output) in enumerate(zip(children, outputs)):
        assert child.returncode <= 0, f"rank {rank} of {function.__name__} failed; its traceback is above"
        results.append(("killed", -child.returncode) if child.returncode else pickle.loads(output))
    return results


def threads(function, ranks, *arguments, **options):
    """Calls function(comm, *arguments) in a thread for each rank of a new communicator. Returns results or exceptions."""
    options.setdefault("timeout", 60)
    comms = tutti.Communicator.create_all(ranks, **options)
    results = [None] * ranks

    def call(rank):
        try:
            results[rank] = function(comms[rank], *arguments)
        except Exception as error:  # The test examines it.
            results[rank] = error

    started = [threading.Thread(target=call, args=(rank,)) for rank in range(ranks)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(TIMEOUT_S)
        assert not thread.is_alive(), f"a rank of {function.__name__} hangs"
    try:
        with tutti.group():
            for comm in comms:
                comm.close()
    except tutti.Error:
        pass  # A failure of the communicator, which a call has raised already.
    return results


def each(function, count=2, **options):
    """Like threads(), but raises the first exception."""
    results = threads(function, count, **options)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def kill_self():
    """Ends the process without any cleanup, as a crash does."""
    os.kill(os.getpid(), signal.SIGKILL)


def main():
    path, call = sys.argv[1:]
    output, sys.stdout = sys.stdout, sys.stderr
    spec = importlib.util.spec_from_file_location("test_of_ranks", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    name, arguments = pickle.loads(bytes.fromhex(call))
    output.buffer.write(pickle.dumps(getattr(module, name)(*arguments)))


if __name__ == "__main__":
    main()
