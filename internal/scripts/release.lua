-- Ends grants of one name, now or in a while, takes a waiter out of the queue or puts it back, and tells the next one.
--
-- KEYS  1 lock   2 fence   3 queue   4 waiters
-- ARGV  1 grant id, '' where only a waiter leaves. What stands behind the last one that is needed is left out:
--       2 the largest ballot that was sent with the grants, where an ask may arrive after this; '0' for none
--       3 ms for which the grants are kept, unlocked and for nobody; '0': they end now
--       4 waiter, '' for none   5 its rank, where it is put back into the queue; '' where it leaves
--       6 a ballot of the ask that is rolled back, or the masters' time of now (with a rank)
--       7... further grants
-- Reply 1 where one of the grants was there, 0 where none was
--
-- Safe to repeat: the second time no grant is there, or it ends no later than before; the waiter is where it was put,
-- and the fence is high enough. The next waiter may be told again, which is a hint. What follows the deletion cannot
-- undo it: a full master and a user without rights to the channel still release. A lock has one grant, so the key of
-- one that is ended goes.
local present, ballot, keep = 0, tonumber(ARGV[2] or 0), tonumber(ARGV[3] or 0)
local waiter, rank = ARGV[4] or '', ARGV[5] or ''
if keep > 0 then
  for _, id in ipairs({ARGV[1], unpack(ARGV, 7)}) do
    if redis.call('HEXISTS', lock, id) == 1 then
      present = 1
      redis.pcall('HSET', lock, id, '0')
      if redis.call('PTTL', lock) > keep then redis.call('PEXPIRE', lock, ARGV[3]) end
    end
  end
elseif ARGV[1] ~= '' and redis.call('HDEL', lock, ARGV[1], unpack(ARGV, 7)) > 0 then
  present = 1
  redis.call('DEL', lock)
end
if present > 0 and ballot == 0 and waiter == '' and redis.call('EXISTS', queue) == 0 then return 1 end
local t, window = redis.call('TIME'), 15000000
local now = t[1] * 1000000 + t[2]
if waiter ~= '' and (rank == '' or join(now, waiter, rank, tonumber(ARGV[6])) < 0) then leave(waiter) end
if ballot > 0 then
  local raw = redis.call('GET', fence) or '0'
  if not string.find(raw, '^%d+$') then return redis.error_reply('BADFENCE the fence of this name is not a number') end
  local top = tonumber(raw)
  -- No higher than an acquire could raise it. A ballot beyond that is refused now, but not later, as the master's time
  -- passes. Clients propose ballots near the masters' time, so it takes a clock that is 15 s wrong.
  if ballot > top and ballot <= math.max(now, top) + window then
    raise(fence, now, ARGV[2])
  end
end
if redis.call('EXISTS', queue) == 1 and redis.call('EXISTS', lock) == 0 then
  drop(now)
  tell(now)
end
return present
