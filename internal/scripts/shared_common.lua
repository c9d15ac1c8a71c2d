-- Functions that the scripts of readers-writer locks share. The scripts include this file after common.lua.
--
-- The lock is a sorted set of lease ids, scored by the expiry of their shares. lock:reads is the readers' fence. The id
-- of a writer's lease or waiter has a w after its number, that of a reader an r. While a writer's share counts on a
-- master, no other share counts there. A plain lock is a hash, so a name that is used as both gives errors of type.
local reads_key = lock .. ':reads'

-- Returns the lease whose share expires last, and the us until then; nil if no share counts. Removes expired shares.
local function holder()
  local id, ends = unpack(call('ZRANGE', lock, -1, -1, 'WITHSCORES'))
  if not id then return nil end
  local expired = call('ZRANGEBYSCORE', lock, '-inf', now, 'LIMIT', 0, 500)
  if #expired > 0 then call('ZREM', lock, unpack(expired)) end
  if tonumber(ends) > now then return id, tonumber(ends) - now end
end

local function writes(id) return string.find(id, '^[^:]*:%d+w') ~= nil end

-- Returns the expiry of the share of a lease, or 0 if the lease has no share that counts.
local function ends(id)
  local at = tonumber(call('ZSCORE', lock, id) or 0)
  return at > now and at or 0
end

-- Sets the expiry of a share to ttl ms from now. The key lasts at least as long.
local function share(id, ttl)
  call('ZADD', lock, now + ttl * 1000, id)
  if call('PTTL', lock) < ttl then call('PEXPIRE', lock, ttl) end
end

-- Notifies the first waiter while readers hold the name. A reader is woken as by wake. A writer must wait for the
-- readers, and receives a probe: a message that ends in a newline and does not wake the writer. The writer is removed
-- if no client receives the probe. If the writer no longer waits, but was queued again by a late acquire, its client
-- removes it. A writer that counts refuses the readers behind it, so that readers do not starve writers. A writer
-- counts for 20 s after its last attempt, and sends an attempt at least every 5 s. After 8 s without an attempt the
-- writer is taken for hung, and removed; its next attempt restores its old place. Returns the same as wake.
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
