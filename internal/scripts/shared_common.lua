-- Functions that the scripts of readers-writer locks share. The scripts include this file after common.lua.
--
-- The hash of the name has the field kind, and the field reads, the readers' fence, if a reader has acquired the name.
-- lock:shares is a sorted set of lease ids. The score of a share is its deadline, the later one by two clocks: this
-- master's time plus the TTL, and the client's estimate of the masters' time plus the TTL. The id of a writer's lease
-- or waiter has a w after its number, that of a reader an r. While a writer's share counts on a master, no other share
-- counts there.
local shares = lock .. ':shares'
local other = left ~= -2 and kind ~= marks[2] and {8, kind or 'lock', now}

-- Returns the lease whose share expires last, and the us until then; nil if no share counts at this time.
local function holder(time)
  local id, ends = unpack(call('ZRANGE', shares, -1, -1, 'WITHSCORES'))
  if id and tonumber(ends) >= time then return id, tonumber(ends) - time + 1 end
end

local function writes(id) return string.find(id, '^[^:]*:%d+w') ~= nil end

-- Returns the deadline of the share of a lease, or 0 if the lease has no share that counts at this time.
local function ends(id, time)
  local at = tonumber(call('ZSCORE', shares, id) or 0)
  return at >= time and at or 0
end

-- Sets the deadline of a share, unless the share has a later one. The keys live at least as long as the share.
local function share(id, ends, life, untils)
  local at = math.max(now + (life - 75000) * 1000, tonumber(untils))
  if at > ends then call('ZADD', shares, string.format('%.0f', at), id) end
  if call('PTTL', shares) < life then call('PEXPIRE', shares, life) end
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
