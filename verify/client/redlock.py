"""A client of the protocol in docs/protocol.md, written from that page: it acquires, extends, releases and waits. It
writes no records, so clients of the library begin and end quarantines, also those after evictions. It repairs no
masters, and knows only epoch 0, without shards. It needs Linux, for a clock that counts suspension."""
import hashlib, itertools, os, pathlib, queue, random, re, socket, threading, time, urllib.parse, uuid

TIMEOUT = float(os.environ.get("REDLOCK_TIMEOUT", 0.5))  # s; at most 15
WINDOW, KEPT, MOST = 15_000_000, 75_000, 2**53 - 1  # us, ms, and the largest ballot
RECORD = re.compile(r"(v4 [0-9a-f]{16}) id=(([0-9a-f]+)/\S+)(?: db=0)? masters=(\S+) epoch=0 maxttl=(\d+) "
                    r"quarantine=\d+ state=(admitted|quarantine) since=(\d+)")


def script(directory, file):
    """The text of a script: with the files that it includes, and without comments."""
    text = pathlib.Path(directory, file + ".lua").read_text()
    text = re.sub(r"(?m)^ *-- include (\w+)\.lua\n", lambda m: script(directory, m[1]), text)
    return re.sub(r"(?m)^ *--.*\n", "", text)


class Redis:
    """One connection. Its user closes it after any exception."""
    def __init__(self, name):
        host, _, port = name.rpartition(":")
        self.sock = socket.create_connection((host, int(port)), TIMEOUT)
        self.file = self.sock.makefile("rb")

    def call(self, *args):
        parts = [str(a).encode() for a in args]
        self.sock.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
        return self.read()

    def read(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b":":
            return int(rest)
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        if kind == b"$" and rest != "-1":
            return self.file.read(int(rest) + 2)[:-2].decode()
        if kind in (b"+", b"-"):
            return rest if kind == b"+" else RuntimeError(rest)
        raise ConnectionError("the connection has ended")


class Master:
    """One master, and the thread that sends its calls in order. session is 0 while it is down, and None at first."""
    def __init__(self, client, name):
        self.client, self.name, self.jobs, self.pending = client, name, queue.Queue(), []
        self.session, self.redis, self.seen = None, None, set()
        self.shown = "", "", False  # the record, the identity of the server, and whether the record has come back
        self.low = self.high = self.reading = self.leap = None  # offset of its clock, less and plus the error, in us
        self.far = None  # the time in the record that was shown when its clock was last seen far off
        threading.Thread(target=self.run, daemon=True).start()
        threading.Thread(target=self.listen, daemon=True).start()

    def run(self):
        beat = connect = 0
        while True:
            try:
                call, done = self.jobs.get(timeout=0.1)
            except queue.Empty:
                call = done = lambda *_: None
            reply = None
            try:
                if not self.redis and time.monotonic() >= connect:
                    connect = time.monotonic() + 0.2
                    self.open()
                if self.session and time.monotonic() >= beat:
                    self.look()
                    beat = time.monotonic() + 2
                if self.session:
                    reply = call(self)
            except Exception as e:  # the outcome of the call is unknown
                self.session, self.low, self.redis, reply = 0, None, None, e
            done(self, reply)

    def open(self):
        self.redis = Redis(self.name)
        settings = "maxmemory", "maxmemory-policy", "repl-backlog-ttl"
        memory, policy, backlog = [self.redis.call("CONFIG", "GET", name)[1] for name in settings]
        self.backlog = int(backlog) * 1000
        if self.redis.call("ROLE")[0] != "master" or memory != "0" and policy != "noeviction":
            raise ConnectionError("the server is not fit")
        for text in self.client.scripts.values():
            self.redis.call("SCRIPT", "LOAD", text)
        self.look()
        while self.pending:
            self.eval("release", *self.pending[0])
            self.pending.pop(0)
        self.session = self.client.number()

    def eval(self, name, *args):
        return self.redis.call("EVALSHA", self.client.sha[name], 1 if name in ("release", "admit") else 2, *args)

    def look(self):
        """Read the record, the identity and the clock."""
        start, (old, _, back) = self.client.now(), self.shown
        _, text, now, identity, _ = self.eval("admit", self.client.record, "read", "", "", "", "", "")
        self.shown = text, identity, text in self.seen if text != old else back
        self.seen.add(text)
        self.clock(now, start)

    def clock(self, now, start):
        """Record that the master's clock was now, between start and the present time of the client."""
        c, end = self.client, self.client.now()
        error, at = (end[0] - start[0]) / 2, [(a + b) / 2 for a, b in zip(start, end)]
        with c.lock:
            last, self.reading = self.reading, (now, at, error)
            self.low, self.high = now - at[0] - error, now - at[0] + error
            if last:
                passed, error = c.since(last[1], at), error + last[2]
                more = now - last[0] - passed
                if more - error > 20_000 + passed / 50:
                    self.leap = more + error, end[0]
                    c.count_leaps(max(10_000_000, passed))
            c.compare_clocks()

    def stamp(self, ttl, vote=True):
        """The stamp of the record, if this master may vote, or only if it has the client's list and allows the TTL."""
        (text, identity, back), match = self.shown, RECORD.fullmatch(self.shown[0])
        stamp, own, run, masters, longest, state, since = match.groups() if match else ("", "", "", "", 0, "", 0)
        ours = identity in (own, run + "/" + "0" * 40 + "/-1")  # or the server has freed its replication backlog
        fit = ours and state == "admitted" and not back and since != self.far and not 0 < self.backlog < int(longest)
        return stamp if (fit or not vote) and masters == self.client.list and ttl <= int(longest) else None

    def listen(self):
        """Receive the messages of the inbox, on a second connection, once a call has to wait."""
        c = self.client
        while c.waits.wait():
            try:
                redis = Redis(self.name)
                redis.call("SUBSCRIBE", c.prefix + ":inbox:" + c.owner)
                redis.sock.settimeout(None)
                c.listening.add(self)
                while True:
                    c.message(self, redis.read()[2])
            except (OSError, ValueError):
                c.listening.discard(self)
                time.sleep(0.05)


class Lock:
    """A lease. A lease that was won is held while left() is positive, in seconds."""
    def __init__(self, client, name, ttl, waiter):
        self.client, self.name, self.ttl, self.waiter, self.start = client, name, ttl, waiter, client.now()
        self.id = "%s:%d:python" % (client.owner, client.number())
        self.asked = int(self.start[0] + client.bounds()[0])
        self.token = max(self.asked, client.floors.pop(name, 0) + 1)
        self.sent = {m: m.session for m in client.masters if m.session}  # read before the records
        self.key, self.digits = "%s:{%s}" % (client.prefix, name), "%016d" % self.token

    def left(self):
        return (self.ttl * 990 - 2000 - self.client.since(self.start, self.client.now())) / 1e6


class Client:
    def __init__(self, masters, scripts, prefix="redlock"):
        self.prefix, self.record = prefix, prefix + ":admission"
        self.owner, self.lock, self.count = str(uuid.uuid4()), threading.Lock(), itertools.count()
        self.scripts = {name: script(scripts, name) for name in ("acquire", "extend", "release", "admit")}
        self.sha = {name: hashlib.sha1(text.encode()).hexdigest() for name, text in self.scripts.items()}
        self.list = ",".join(sorted(urllib.parse.quote(m, safe="$&+:=@") for m in masters))
        self.missed, self.floors, self.waits, self.listening, self.waiters = 0, {}, threading.Event(), set(), {}
        self.n, self.quorum, self.masters = len(masters), len(masters) // 2 + 1, []
        self.masters += [Master(self, m) for m in masters]

    def number(self):
        return random.SystemRandom().randrange(1, 1 << 32) << 20 | next(self.count)

    def now(self):
        """The boot clock and the wall clock, in us, both with the time that only the masters' clocks have shown."""
        return [time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1e3 + self.missed, time.time_ns() / 1e3 + self.missed]

    def since(self, a, b):
        return max(b[0] - a[0], b[1] - a[1])

    def count_leaps(self, within):
        shown = [m for m in self.masters if m.leap and self.now()[0] - m.leap[1] <= within]
        if len(shown) >= self.quorum:
            self.missed += sorted(m.leap[0] for m in shown)[-self.quorum]
            for m in self.masters:
                m.leap = m.reading = m.low = None  # until the next reading

    def bounds(self):
        """Offsets of clocks that are not later than some correct clock, and not earlier than the known correct clocks."""
        fresh = [m for m in self.masters if m.low is not None and self.now()[0] - m.reading[1][0] < 10_000_000]
        known = [(m.low, m.high) for m in fresh] or [(0, 0)]
        k, f = len(known), (self.n - 1) // 2
        near = sorted(high for _, high in known)[min(f, k - 1)] + WINDOW
        return sorted(low for low, _ in known)[max(0, k - f - 1)], max(high for low, high in known if low <= near)

    def compare_clocks(self):
        """Find the clocks that are far off: those of a majority, all read later, are on one side of them."""
        known = [m for m in self.masters if m.low is not None]
        for m in known if None not in [m.session for m in self.masters] else []:
            ahead, behind = sum(o.high + WINDOW < m.low for o in known), sum(o.low - WINDOW > m.high for o in known)
            match = RECORD.fullmatch(m.shown[0])
            if match and max(ahead, behind) > self.n // 2 and all(o.reading[1][0] >= m.reading[1][0] for o in known):
                m.far = match.groups()[-1]

    def until(self, start, ttl):
        return "%016d" % min(MOST, int(start[0] + self.bounds()[1]) + ttl * 1000 + 1)

    def send(self, call, sent, wait, done=lambda *_: None):
        """Send calls to the masters in sent. Return {master: reply} when a majority of all masters has replied 1, or
        cannot any more, or after wait. call and done run on the thread of the master."""
        replies, got, end = queue.Queue(), {}, time.monotonic() + wait
        for m in sent:
            m.jobs.put((call, lambda m, reply: (done(m, reply), replies.put((m, reply)))))
        while (ones := list(got.values()).count(1)) < self.quorum <= ones + len(sent) - len(got):
            try:
                m, got[m] = replies.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                break
        return got

    def round(self, build, sent):
        """Send calls over the sessions in sent. Return {master: reply}, without masters that were replaced since."""
        got = self.send(lambda m: m.eval(*build(m)) if m.session == sent[m] else None, sent, TIMEOUT)
        return {m: reply for m, reply in got.items() if m.session == sent[m]}

    def attempt(self, name, ttl, waiter):
        """One acquire. Returns the Lock or None, and the replies."""
        lock = Lock(self, name, ttl, waiter)
        stamps = {m: s for m in lock.sent if (s := m.stamp(ttl))}
        lock.sent = {m: lock.sent[m] for m in stamps}
        text = "1 %s %s %s" % (lock.digits, lock.digits, self.until(lock.start, ttl))
        mode = ("acquire", waiter or "", 0, "%016d" % lock.asked) if waiter or lock.token > lock.asked else ()
        got = self.round(lambda m: ("acquire", lock.key, self.record, stamps[m], lock.id, ttl + KEPT,
                                    lock.digits, lock.digits, text) + mode, lock.sent)
        slow = self.since(lock.start, self.now()) >= TIMEOUT * 1e6
        if list(got.values()).count(1) >= self.quorum and not slow and lock.left() > 0:
            return lock, got
        refused = {m: r for m, r in got.items() if isinstance(r, list)}
        for m, reply in refused.items():
            m.clock(reply[-1], lock.start)
            if reply[0] == 6:
                m.jobs.put((Master.look, lambda *_: None))  # the record has changed
        fences = sorted(int(r[-2]) for r in refused.values() if r[0] in (2, 3, 4))
        at = min(self.quorum, len(fences) - max(0, len(lock.sent) - self.quorum)) - 1
        self.floors[name] = fences[at] if at >= 0 else 0
        lock.sent = {m: s for m, s in lock.sent.items() if m not in refused}
        self.release(lock, rank="0", wait=0)
        return None, got

    def release(self, lock, rank="", wait=TIMEOUT):
        """Release a lease, or roll it back with the rank of its waiter. Returns whether a majority has confirmed it."""
        def call(m):  # with a ballot if the acquire may arrive later
            ballot, back = "0" if m.session == lock.sent[m] else lock.digits, rank if lock.waiter else ""
            return m.eval("release", lock.key, lock.id, ballot, 0, 0, lock.waiter or "", back, lock.token)

        def done(m, reply):
            if not isinstance(reply, (int, RuntimeError)):
                m.pending.append((lock.key, lock.id, lock.digits))
        return list(self.send(call, lock.sent, wait, done).values()).count(1) >= self.quorum

    def acquire(self, name, ttl, wait):
        """Wait for the name for up to wait seconds. ttl is in ms. Returns a Lock or None."""
        end, event, ready, lock = time.monotonic() + wait, threading.Event(), False, None
        waiter = "%016d:%s:%d:python" % (self.now()[0] + self.bounds()[0], self.owner, self.number())
        self.waiters[waiter] = event
        for tries in itertools.count(1):
            event.clear()
            able = len([m for m in self.masters if m.session and m.stamp(ttl)]) >= self.quorum
            joined, ready = ready, able and len(self.listening) >= self.quorum
            if joined and not ready:
                self.leave(name, waiter, self.masters)
            lock, got = self.attempt(name, ttl, waiter if ready else None) if able else (None, {})
            left, codes = end - time.monotonic(), [r[0] for r in got.values() if isinstance(r, list)]
            if lock or left <= 0:
                break
            if tries % 4 and 2 not in codes and (3 in codes or 4 in codes):
                continue  # only the ballot was refused
            self.waits.set()  # subscribe
            event.wait(min(left, 1 if ready else random.uniform(0.005, 0.02)))
        del self.waiters[waiter]
        if ready and not lock:
            self.leave(name, waiter, self.masters)
        return lock

    def leave(self, name, waiter, masters):
        self.send(lambda m: m.eval("release", "%s:{%s}" % (self.prefix, name), "", 0, 0, 0, waiter, "", 0), masters, 0)

    def message(self, master, text):
        waiter, _, key = text.partition("\n")
        if waiter in self.waiters and not key.endswith("\n"):  # else it is a probe
            self.waiters[waiter].set()
        elif waiter not in self.waiters and re.match(r"\d{16}:", waiter):
            self.leave(key.rstrip("\n")[len(self.prefix) + 2:-1], waiter, [master])

    def extend(self, lock):
        """Make the full TTL valid again. Returns whether a majority has confirmed it."""
        start = self.now()
        term = lock.id, lock.ttl + KEPT, 0, 1, self.until(start, lock.ttl)
        sent = {m: m.session for m in self.masters if m.session and (m.stamp(0, vote=False) or not m.shown[0])}
        got = self.round(lambda m: ("extend", lock.key, self.record, m.stamp(lock.ttl, vote=False) or "-", *term), sent)
        if list(got.values()).count(1) < self.quorum or lock.left() <= 0:
            return False
        lock.start = start
        return lock.left() > 0
