-- Functions that the acquire and release scripts share. The scripts include this file after their common case, which
-- does not need the functions. marks is a local of the script: the fields that mark a hash as one of its kind.
--
-- Times are microseconds of this master's clock. No function's work grows with the number of waiters: one script drops
-- at most 500 expired waiters and wakes at most 8.
local queue, waiters, kept = lock .. ':queue', lock .. ':waiters', 75000
-- include now.lua
local fence, kind, queued = unpack(call('HMGET', lock, 'fence', 'kind', 'queue'))
local left = call('PTTL', lock)
if not fence and left ~= -2 then return redis.error_reply('WRONGTYPE the hash is not a lock') end
fence = fence or '0000000000000000'
local top = string.find(fence, '^%d+$') and tonumber(fence)
if not top then return redis.error_reply('BADFENCE the fence of this name is not a number') end

-- Returns the ms for which a fence must be kept: until 60 s after the latest ballot that a master accepts, or until
-- 60 s after the fence itself if that is later.
local function fence_life(ballot) return kept + math.ceil(math.max(0, ballot - now - window) / 1000) end

-- Lets the key live for at least these ms. A key without expiry, which these scripts never leave, does not get one.
local function prolong(life)
  if left ~= -1 and call('PTTL', lock) < life then call('PEXPIRE', lock, life) end
end

-- Raises the fence to a ballot, unless an acquire with this ballot would be rejected as too far ahead: that acquire is
-- rejected now, and may be granted later. This needs a clock that is 15 s wrong, because clients propose ballots near
-- the masters' time.
local function raise(ballot)
  if ballot > top and ballot <= math.max(now, top) + window then
    call('HSET', lock, 'fence', string.format('%016.0f', ballot), unpack(marks))
    prolong(fence_life(ballot))
  end
end

local function leave(waiter)
  call('ZREM', queue, waiter)
  call('ZREM', waiters, waiter)
  if call('EXISTS', queue) == 0 then call('HDEL', lock, 'queue') end
end

-- Puts a waiter into the queue, where it counts for 20 s, and returns its index. Returns -1 without a waiter, or if its
-- attempt is older than 20 s: a late message must not put a waiter back that has left.
local function join(waiter, rank, asked)
  if not waiter or waiter == '' or asked < now - 20000000 then return -1 end
  call('ZADD', queue, rank, waiter)
  call('ZADD', waiters, now + 20000000, waiter)
  call('PEXPIRE', queue, 21000)
  call('PEXPIRE', waiters, 21000)
  if left == -2 then call('HSET', lock, 'fence', fence, unpack(marks)) end
  call('HSET', lock, 'queue', '1')
  prolong(21000)
  return call('ZRANK', queue, waiter)
end

-- Removes at most 500 waiters that no longer count. Returns whether there is still a queue.
local function drop()
  local expired = call('ZRANGEBYSCORE', waiters, '-inf', now, 'LIMIT', 0, 500)
  if #expired > 0 then
    call('ZREM', queue, unpack(expired))
    call('ZREM', waiters, unpack(expired))
  end
  if call('EXISTS', queue) == 1 then return true end
  call('HDEL', lock, 'queue')
  return false
end

-- Publishes a message about the lock to the inbox of the owner of a waiter or a lease. The id of a waiter begins with a
-- time. Returns false if no client received the message. An error of PUBLISH, for lack of rights, counts as received.
local function publish(id, ending)
  local owner = string.match(id, '^%d+:([^:]*):') or string.match(id, '^([^:]*):') or ''
  return redis.pcall('PUBLISH', string.match(lock, '^(.-:){') .. 'inbox:' .. owner, id .. '\n' .. lock .. ending) ~= 0
end

-- Reports whether a caller with this rank comes before the first waiter. Ids are compared as texts: they begin with a
-- time of 16 digits and a UUID.
local function precedes(caller, rank, first, score)
  return caller and (rank < tonumber(score) or rank == tonumber(score) and caller < first)
end

-- Wakes the first waiter, and returns how long this waiter counts from now on: at most one second. If the first waiter
-- no longer counts, or its client does not receive the message, removes it and wakes the next waiter; after 8 removals
-- returns 0. Returns nil if there is no waiter, or if the first waiter is the caller or comes after the caller.
local function wake(caller, rank)
  for _ = 1, 8 do
    local first, score = unpack(call('ZRANGE', queue, 0, 0, 'WITHSCORES'))
    if not first or first == caller or precedes(caller, rank, first, score) then return nil end
    local counts = tonumber(call('ZSCORE', waiters, first) or 0)
    if counts > now and publish(first, '') then
      counts = math.min(counts, now + 1000000)
      call('ZADD', waiters, counts, first)
      return counts - now
    end
    leave(first)
  end
  return 0
end
