"""Limits of the network of a setting, measured by ping_driver, iperf3 and ucx_perftest."""

import json
import os
import subprocess
import time

ROUNDS = 300
PINGS = 3
TIMEOUT_S = 20


def stream_gbps(text):
    """Parses iperf3's JSON. Returns received gigabits per second, both directions together, and the congestion control.
    Returns None if it has only an error message, with which iperf3 also ends with status 0."""
    end = json.loads(text)["end"]
    if "sum_received" not in end:
        return None
    bits = end["sum_received"]["bits_per_second"]
    bits += end.get("sum_received_bidir_reverse", {}).get("bits_per_second", 0)
    return bits / 1e9, end.get("sender_tcp_congestion", "unknown")


def ucx_numbers(text):
    """Parses the last line of ucx_perftest -f -v. Returns median latency in us, and MB/s."""
    fields = text.strip().split("\n")[-1].split(",")
    return float(fields[1]), float(fields[5])


class Limits:
    """Best measured limits so far. Other load on the machine can only make them look worse."""

    def __init__(self, stage, build):
        self.stage = stage
        self.build = build
        self.port = 5400
        self.best = {}
        self.missing = []

    def pair(self, server, client, understand, environment=None):
        """Runs the server on the host of the first rank and the client on that of the last. Replaces {address} and {port} in
        their commands. Returns understand(output of the client), or None if they failed."""
        self.port += 1
        words = {"address": self.stage.address(0), "port": self.port}
        command = lambda rank, words_of: self.stage.on(rank, [word.format(**words) for word in words_of])
        variables = {**os.environ, **(environment or {})}
        asking = command(self.stage.setting.ranks - 1, client)
        quiet = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": variables}
        serving = subprocess.Popen(command(0, server), stdout=subprocess.DEVNULL, **quiet)
        try:
            for _ in range(50):  # The server may not be listening yet.
                said = subprocess.run(asking, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S, **quiet)
                found = understand(said.stdout) if said.returncode == 0 else None
                if found is not None:
                    return found
                if serving.poll() is not None:
                    return None
                time.sleep(0.02)
        except subprocess.TimeoutExpired:
            pass
        finally:
            serving.kill()
            serving.wait()
        return None

    def note(self, name, value, better):
        if name not in self.best or better(value, self.best[name]) == value:
            self.best[name] = value

    def ping(self):
        program = os.path.join(self.build, "ping_driver")
        cores = self.stage.cores
        found = self.pair([program, "serve", "{address}", "{port}", str(cores[0])],
                          [program, "ask", "{address}", "{port}", str(cores[-1]), str(ROUNDS)], str.split)
        if found is None:
            return self.missing.append("ping_driver failed")
        median_us, _, control = found
        self.note("half_round_trip_us", float(median_us), min)
        self.best["congestion"] = control

    def exchange(self):
        """Measures the time in which two ranks exchange 8 bytes. Both send at once, so it exceeds half a round trip."""
        program = os.path.join(self.build, "ping_driver")
        cores = self.stage.cores
        end = lambda role, core: [program, role, "{address}", "{port}", str(core), str(ROUNDS)]
        found = self.pair(end("join", cores[0]), end("meet", cores[-1]), str.split)
        if found is None:
            return self.missing.append("ping_driver failed")
        self.note("exchange_us", float(found[0]), min)

    def stream(self, name, *more):
        cores = self.stage.cores
        found = self.pair(["iperf3", "-s", "-1", "-p", "{port}", "-A", str(cores[0])],
                          ["iperf3", "-c", "{address}", "-p", "{port}", "-t", "1", "-J", "-A", str(cores[-1]), *more],
                          stream_gbps)
        if found is None:
            return self.missing.append("iperf3 failed")
        gbps, control = found
        self.note(name, gbps, max)
        self.best["congestion"] = control

    def ucx(self, test, size, count):
        environment = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": self.stage.interface}
        core = lambda end: ["-c", str(self.stage.cores[end])]
        common = ["-p", "{port}", "-t", test, "-s", str(size), "-n", str(count), "-f", "-v"]
        found = self.pair(["ucx_perftest", *common, *core(0)], ["ucx_perftest", "{address}", *common, *core(-1)],
                          ucx_numbers, environment)
        if found is None:
            return self.missing.append(f"ucx_perftest {test} failed")
        latency_us, mbps = found
        if test == "tag_lat":
            self.note("ucx_latency_us", latency_us, min)
        else:
            self.note("ucx_gbps", mbps * (1 << 20) * 8 / 1e9, max)

    def look(self):
        """Measures all limits that apply to the setting once more."""
        try:
            for _ in range(PINGS):
                self.ping()
                self.exchange()
            self.stream("stream_gbps")
            if not self.stage.setting.rate:
                self.stream("both_ways_gbps", "--bidir")
                self.ucx("tag_lat", 8, 10000)
                self.ucx("tag_bw", 1 << 20, 1000)
        except OSError as error:
            self.missing.append(str(error))

    def of_row(self, size):
        """Returns a lower bound in us for all-reduce: the maximum of its message latencies and of its transfer time."""
        setting = self.stage.setting
        if setting.rate:
            return setting.link_us(size)
        steps = (setting.ranks - 1).bit_length()
        latency_us = self.best.get("half_round_trip_us", 0) * steps
        gbps = max(self.best.get("both_ways_gbps", 0), self.best.get("stream_gbps", 0))
        return max(latency_us, setting.moved_bytes(size) * 8 / (gbps * 1e3) if gbps else 0)
