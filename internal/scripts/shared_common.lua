-- What the scripts of a lock with readers share; this text stands behind common.lua.
--
-- KEYS  1 lock (sorted set: grant id by the time at which its share ends)   2 fence   3 queue   4 waiters
--       5 reads: the readers' fence
--
-- The id of a writer's grant has a w behind its number, a reader's an r; so have the ids of their waiters. On one
-- master a writer whose share counts is alone. A plain lock has a hash in the place of the sorted set, so a name that
-- is used as both is an error of type here and there.

local function time()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- The share that ends last, and for how many us it counts; nil where none counts. Shares that are over are removed.
local function holder(now)
  local id, ends = unpack(redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES'))
  if not id then return nil end
  local over = redis.call('ZRANGEBYSCORE', lock, '-inf', now, 'LIMIT', 0, 500)
  if #over > 0 then redis.call('ZREM', lock, unpack(over)) end
  if tonumber(ends) > now then return id, tonumber(ends) - now end
end

local function writes(id) return string.find(id, '^[^:]*:%d+w') ~= nil end

-- Until when the share of a grant counts; 0 where it has none.
local function ends(now, id)
  local at = tonumber(redis.call('ZSCORE', lock, id) or 0)
  return at > now and at or 0
end

-- A share lasts ttl ms from now. The key lasts as long as the longest share.
local function share(now, id, ttl)
  redis.call('ZADD', lock, now + ttl * 1000, id)
  if redis.call('PTTL', lock) < ttl then redis.call('PEXPIRE', lock, ttl) end
end

-- Notifies the first waiter while readers have the name: a reader as tell does. A writer must wait for them, and gets a
-- message that ends in a newline and is no hint. It is removed if no client receives that, and its client has it leave
-- if it waits no more: a late acquire may have queued it again. As long as it counts it keeps the readers out that come
-- after it, so that writers are not starved. One that has not asked for 8 s hangs, and is removed. It counts for 20 s
-- from its last ask, and asks at least every 5 s; if it asks again, it has its old place. Returns what tell returns.
local function invite(now, caller, rank)
  for _ = 1, 8 do
    local first, score = unpack(redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES'))
    if not first or string.find(first, '^%d+:[^:]*:%d+r') then return tell(now, caller, rank) end
    if caller and (rank < tonumber(score) or rank == tonumber(score) and caller < first) then return nil end
    local counts = tonumber(redis.call('ZSCORE', waiters, first) or 0)
    local inbox = string.match(lock, '^(.-:){') .. 'inbox:' .. (string.match(first, '^%d+:([^:]*):') or '')
    if counts > now + 12000000 and redis.pcall('PUBLISH', inbox, first .. '\n' .. lock .. '\n') ~= 0 then
      return counts - 12000000 - now
    end
    leave(first)
  end
  return 0
end
