-- The functions that the scripts of a lock with readers share; they follow common.lua.
--
-- The lock is a sorted set: lease id by the time at which its share ends. lock:reads is the readers' fence. The id of a
-- writer's lease has a w behind its number, a reader's an r; so have the ids of their waiters. On one master a writer
-- whose share counts is alone. A plain lock is a hash, so a name that is used as both is an error of type in both.
local reads_key = lock .. ':reads'

-- Returns the share that ends last, and for how many us it counts; nil if none counts. Expired shares are removed.
local function holder()
  local id, ends = unpack(call('ZRANGE', lock, -1, -1, 'WITHSCORES'))
  if not id then return nil end
  local expired = call('ZRANGEBYSCORE', lock, '-inf', now, 'LIMIT', 0, 500)
  if #expired > 0 then call('ZREM', lock, unpack(expired)) end
  if tonumber(ends) > now then return id, tonumber(ends) - now end
end

local function writes(id) return string.find(id, '^[^:]*:%d+w') ~= nil end

-- Returns until when the share of a lease counts; 0 if it has none.
local function ends(id)
  local at = tonumber(call('ZSCORE', lock, id) or 0)
  return at > now and at or 0
end

-- A share lasts ttl ms from now. The key lasts as long as the longest share.
local function share(id, ttl)
  call('ZADD', lock, now + ttl * 1000, id)
  if call('PTTL', lock) < ttl then call('PEXPIRE', lock, ttl) end
end

-- Wakes the first waiter while readers have the name: a reader as wake does. A writer must wait for them, and gets a
-- probe, a message that ends in a newline and wakes nothing. It is removed if no client receives the probe, and its
-- client has it leave if it waits no more: a late acquire may have queued it again. As long as it counts it keeps the
-- readers out that come after it, so that writers are not starved. One that has sent no attempt for 8 s hangs, and is
-- removed. It counts for 20 s from its last attempt, and sends one at least every 5 s; if it sends another, it has its
-- old place. Returns what wake returns.
local function invite(caller, rank)
  for _ = 1, 8 do
    local first, score = unpack(call('ZRANGE', queue, 0, 0, 'WITHSCORES'))
    if not first or string.find(first, '^%d+:[^:]*:%d+r') then return wake(caller, rank) end
    if precedes(caller, rank, first, score) then return nil end
    local counts = tonumber(call('ZSCORE', waiters, first) or 0)
    if counts > now + 12000000 and publish(first, '\n') then return counts - 12000000 - now end
    leave(first)
  end
  return 0
end
