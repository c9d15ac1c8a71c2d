"""Runs the client for client_test.go. The arguments are the directory of the scripts and the names of the masters. Each
line of the standard input is a command, and has one line as its reply. The program ends with its input."""
import json, os, random, sys, threading, time

import redlock


def stamp():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)  # that of internal/history


class Work:
    """Acquires and releases names in three threads, and writes a history as internal/history does. The last thread does
    not wait for its name, so that votes are split."""

    def __init__(self, client, path, ident):
        self.client, self.ident, self.end, self.holds = client, ident, False, 0
        self.file = open(os.path.join(path, ident + ".jsonl"), "a", buffering=1)
        self.threads = [threading.Thread(target=self.loop, args=(i,), daemon=True) for i in range(3)]
        for t in self.threads:
            t.start()

    def put(self, op, name, hold, call, **more):
        self.file.write(json.dumps({"Op": op, "Name": name, "Hold": hold, "Call": call, "Ret": stamp(), **more}) + "\n")

    def loop(self, i):
        turn = 0
        while not self.end:
            turn += 1
            name, hold, call = "shared-%d" % (2 if i == 2 else turn % 2), "%s.%d.%d" % (self.ident, i, turn), stamp()
            lock = self.client.acquire(name, 1000, 0 if i == 2 else 2)
            if not lock:
                self.put("lock", name, hold, call, Kind="no quorum", Err="not acquired")
                time.sleep(random.random() * 0.01)
                continue
            self.holds += 1
            now = stamp()
            self.put("lock", name, hold, call, Token=lock.token, Until=now + int(lock.left() * 1e9))
            kind, call = random.randrange(60), stamp()
            for _ in range(4 if kind < 2 else 0):  # longer than the TTL, with and without extensions
                time.sleep(0.3)
                call = stamp()
                if kind == 0 and self.client.extend(lock):
                    now = stamp()
                    self.put("extend", name, hold, call, Until=now + int(lock.left() * 1e9))
            time.sleep(random.random() * 0.004)
            call = stamp()
            self.put("leave", name, hold, call)
            if self.client.release(lock):
                self.put("unlock", name, hold, call)


def main():
    client, locks, work = redlock.Client(sys.argv[2:], sys.argv[1]), {}, None
    for line in sys.stdin:
        command, *args = line.split()
        if command == "acquire":
            lock = locks[args[0]] = client.acquire(args[0], int(args[1]), float(args[2]))
            reply = lock.token if lock else 0
        elif command == "extend":
            reply = int(client.extend(locks[args[0]]))
        elif command == "left":
            reply = int(locks[args[0]].left() * 1e6)
        elif command == "release":
            reply = int(client.release(locks[args[0]]))
        elif command == "votes":  # how many masters count
            reply = len([m for m in client.masters if m.session and m.stamp(1000)])
        elif command == "ahead":  # how far the latest clock is ahead of the masters' time, in us
            reply = int(max(m.low or 0 for m in client.masters) - client.bounds()[0])
        elif command == "work":
            work, reply = Work(client, *args), 1
        elif command == "holds":
            reply = work.holds
        else:  # stop
            work.end = True
            for t in work.threads:
                t.join()
            reply = work.holds
        print(reply, flush=True)


main()
