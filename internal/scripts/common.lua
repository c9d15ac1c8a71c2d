-- Functions that the acquire and release scripts share. The scripts include this file after their common case, which
-- does not need the functions. marks is a local of the script: the fields that mark a hash as one of its kind.
--
-- Times are microseconds of this master's clock. No function's work grows with the number of waiters: one script drops
-- at most 500 expired waiters and wakes at most 8.
local queue, waiters = lock .. ':queue', lock .. ':waiters'
-- include now.lua
local fence, kind, queued, kept = unpack(call('HMGET', lock, 'fence', 'kind', 'queue', 'kept'))
kept = tonumber(kept or 75000)
local left = call('PTTL', lock)
if not fence and left ~= -2 then return redis.error_reply('WRONGTYPE the hash is not a lock') end
fence = fence or '0000000000000000'
local top = string.find(fence, '^%d+$') and tonumber(fence)
if not top then return redis.error_reply('BADFENCE the fence of this name is not a number') end

-- Returns the ms for which a fence must be kept: until 60 s after the latest ballot that a master accepts, or until
-- 60 s after the fence itself if that is later.
local function fence_life(ballot) return 75000 + math.ceil(math.max(0, ballot - now - window) / 1000) end

-- Lets the key live for at least these ms, and with it the shares: while ballots may follow its fence, a clock that
-- jumps must not expire them alone. A key without expiry, which another program has removed, does not get one: these
-- ms may be less than its lease needs.
local function prolong(life)
  if left ~= -1 and call('PTTL', lock) < life then call('PEXPIRE', lock, life) end
  local shares = marks[2] == 'readers-writer' and lock .. ':shares'
  if shares and call('PTTL', shares) < life then call('PEXPIRE', shares, life) end
end

-- Lets the key live until a lease has expired after these ms, and then for as long as the fence, this ballot, needs. If
-- that is longer than 75 s, the field kept says how long.
local function live(ms, ballot)
  local life = fence_life(ballot)
  if life > 75000 then call('HSET', lock, 'kept', string.format('%.0f', life))
  elseif kept ~= 75000 then call('HDEL', lock, 'kept') end
  call('PEXPIRE', lock, ms + life)
end

-- Returns the number of leases in the hash of a plain lock.
local function leases()
  local number, others = call('HLEN', lock), call('HMGET', lock, 'fence', 'queue', 'kept')
  for i = 1, 3 do
    if others[i] then number = number - 1 end
  end
  return number
end

-- Raises the fence to a ballot, unless an acquire with this ballot would be rejected as too far ahead: that acquire is
-- rejected now, and may be granted later. This needs a clock that is 15 s wrong, because clients propose ballots near
-- the masters' time.
local function raise(ballot)
  if ballot > top and ballot <= math.max(now, top) + window then
    call('HSET', lock, 'fence', string.format('%016.0f', ballot), unpack(marks))
    if kind or marks[1] then prolong(fence_life(ballot)) -- shares have deadlines of their own
    elseif left ~= -1 then live(math.max(0, call('PTTL', lock) - kept), ballot) end
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
