-- What acquire and release share; this text stands before each of them.
--
-- KEYS  1 lock   2 fence   3 queue (sorted set: waiter by rank)
--       4 waiters (sorted set: waiter by the time until which it counts)
--
-- Times are microseconds of this master's clock. No function's work grows with the number of waiters: at most 500 dead
-- ones are dropped, and at most 8 are told, by one script.
local lock, fence, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

-- A fence is kept for 60 s after the later of now and itself.
local function raise(key, now, ballot)
  redis.call('SET', key, ballot, 'PX', 60000 + math.ceil(math.max(0, ballot - now) / 1000))
end

local function leave(waiter)
  redis.call('ZREM', queue, waiter)
  redis.call('ZREM', waiters, waiter)
end

-- Puts a waiter into the queue, where it counts for 20 s, and returns its place from 0. Returns -1 where there is no
-- waiter, or its ask is so old that it counts no more: a late message must not bring back a waiter that has gone.
local function join(now, waiter, rank, asked)
  if not waiter or asked < now - 20000000 then return -1 end
  redis.call('ZADD', queue, rank, waiter)
  redis.call('ZADD', waiters, now + 20000000, waiter)
  redis.call('PEXPIRE', queue, 21000)
  redis.call('PEXPIRE', waiters, 21000)
  return redis.call('ZRANK', queue, waiter)
end

local function drop(now)
  local dead = redis.call('ZRANGEBYSCORE', waiters, '-inf', now, 'LIMIT', 0, 500)
  if #dead == 0 then return end
  redis.call('ZREM', queue, unpack(dead))
  redis.call('ZREM', waiters, unpack(dead))
end

-- Tells the first waiter that the name is free, and returns for how long it counts from now on: at most one second. A
-- waiter that nobody hears, or that counts no more, is removed, and the next is looked at; after 8 of them the answer
-- is 0. Returns nil where nobody waits, or the first is the caller or comes after it. An error of PUBLISH, for lack of
-- rights, removes nobody. Two ids can be compared as texts: they begin with a time of 16 digits and a UUID.
local function tell(now, caller, rank)
  for _ = 1, 8 do
    local first, score = unpack(redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES'))
    if not first or first == caller then return nil end
    if caller and (rank < tonumber(score) or rank == tonumber(score) and caller < first) then return nil end
    local counts = tonumber(redis.call('ZSCORE', waiters, first) or 0)
    if counts > now then
      local inbox = string.match(lock, '^(.-:){') .. 'inbox:' .. (string.match(first, '^%d+:([^:]*):') or '')
      if redis.pcall('PUBLISH', inbox, first .. '\n' .. lock) ~= 0 then
        counts = math.min(counts, now + 1000000)
        redis.call('ZADD', waiters, counts, first)
        return counts - now
      end
    end
    leave(first)
  end
  return 0
end
