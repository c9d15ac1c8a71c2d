-- Ends shares of one name, takes a waiter out of the queue or puts it back, and tells the next one.
--
-- KEYS  1 lock   2 fence   3 queue   4 waiters   5 reads (the readers' fence)
-- ARGV  1 grant id, '' where only a waiter leaves. What stands behind the last one that is needed is left out:
--       2 the largest ballot that was sent with the grants, where an ask may arrive after this; '0' for none
--       3 '0', as in a plain release: shares end now
--       4 waiter, '' for none   5 its rank, where it is put back into the queue; '' where it leaves
--       6 a ballot of the ask that is rolled back, or the masters' time of now (with a rank)
--       7... further grants
-- Reply 1 where one of the grants was there, 0 where none was
--
-- Safe to repeat: the second time no share is there, the waiter is where it was put, and the fence is high enough. The
-- next waiter may be told again, which is a hint. The ballot becomes the fence of all, also where it was a reader's:
-- that is what refuses the reader's ask when it comes. Other readers that ask just then ask again with a larger ballot.
local present, ballot, waiter, rank = 0, tonumber(ARGV[2] or 0), ARGV[4] or '', ARGV[5] or ''
if ARGV[1] ~= '' then present = math.min(1, redis.call('ZREM', lock, ARGV[1], unpack(ARGV, 7))) end
if present > 0 and ballot == 0 and waiter == '' and redis.call('EXISTS', queue) == 0 then return 1 end
local now, window = time(), 15000000
if waiter ~= '' and (rank == '' or join(now, waiter, rank, tonumber(ARGV[6])) < 0) then leave(waiter) end
if ballot > 0 then
  local raw = redis.call('GET', fence) or '0'
  if not string.find(raw, '^%d+$') then return redis.error_reply('BADFENCE the fence of this name is not a number') end
  local top = tonumber(raw)
  -- No higher than an acquire could raise it. A ballot beyond that is refused now, but not later, as the master's time
  -- passes. Clients propose ballots near the masters' time, so it takes a clock that is 15 s wrong.
  if ballot > top and ballot <= math.max(now, top) + window then raise(fence, now, ARGV[2]) end
end
if redis.call('EXISTS', queue) == 0 then return present end
drop(now)
local held = holder(now)
if not held then tell(now) elseif not writes(held) then invite(now) end
return present
