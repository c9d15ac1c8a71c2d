-- Functions that the acquire and release scripts share. acquire.lua and release.lua include this file after their
-- common case, which does not need the functions.
--
-- Times are microseconds of this master's clock. No function's work grows with the number of waiters: one script drops
-- at most 500 expired waiters and wakes at most 8.
local fence_key, queue, waiters = lock .. ':fence', lock .. ':queue', lock .. ':waiters'
-- include now.lua

-- Returns a fence as a number, or nil if its text is not a number.
local function number(fence) return string.find(fence, '^%d+$') and tonumber(fence) end

local function bad_fence() return redis.error_reply('BADFENCE the fence of this name is not a number') end

-- Sets a fence. It expires 60 s after the latest ballot that a master accepts, or 60 s after itself if that is later.
local function raise(key, ballot)
  call('SET', key, ballot, 'PX', 75000 + math.ceil(math.max(0, ballot - now - window) / 1000))
end

local function leave(waiter)
  call('ZREM', queue, waiter)
  call('ZREM', waiters, waiter)
end

-- Puts a waiter into the queue, where it counts for 20 s, and returns its index. Returns -1 without a waiter, or if its
-- attempt is older than 20 s: a late message must not put a waiter back that has left.
local function join(waiter, rank, asked)
  if not waiter or asked < now - 20000000 then return -1 end
  call('ZADD', queue, rank, waiter)
  call('ZADD', waiters, now + 20000000, waiter)
  call('PEXPIRE', queue, 21000)
  call('PEXPIRE', waiters, 21000)
  return call('ZRANK', queue, waiter)
end

-- Removes at most 500 waiters that no longer count.
local function drop()
  local expired = call('ZRANGEBYSCORE', waiters, '-inf', now, 'LIMIT', 0, 500)
  if #expired == 0 then return end
  call('ZREM', queue, unpack(expired))
  call('ZREM', waiters, unpack(expired))
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
