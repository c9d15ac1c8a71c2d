-- Ends shares of one name, takes a waiter out of the queue or puts it back, and wakes the next.
--
-- KEYS  1 lock; the other keys are made from it, as in shared_acquire.lua
-- ARGV  1 lease id, '' if only a waiter leaves. What comes after the last one that is needed is left out:
--       2 the largest ballot that was sent with the leases, if an acquire may arrive after this; '0' for none
--       3 '0', as in a plain release: shares end now
--       4 waiter, '' for none   5 its rank, if it is put back into the queue; '' if it leaves
--       6 a ballot of the attempt that is rolled back, or the masters' present time (with a rank)
--       7... further lease ids
-- Reply 1 if one of the leases was there, 0 if none was
--
-- Safe to repeat: the second time no share is there, the waiter is where it was put, and the fence is high enough. The
-- next waiter may be woken again, which costs it a round. The ballot becomes the fence of all, also if it was a
-- reader's: it rejects the reader's acquire when that arrives. Other readers that send an acquire just then send it
-- again with a larger ballot.
local call, lock = redis.call, KEYS[1]
-- include common.lua
-- include shared_common.lua
local present, ballot, waiter, rank = 0, tonumber(ARGV[2] or 0), ARGV[4] or '', ARGV[5] or ''
if ARGV[1] ~= '' then present = math.min(1, call('ZREM', lock, ARGV[1], unpack(ARGV, 7))) end
if present > 0 and ballot == 0 and waiter == '' and call('EXISTS', queue) == 0 then return 1 end
if waiter ~= '' and (rank == '' or join(waiter, rank, tonumber(ARGV[6])) < 0) then leave(waiter) end
if ballot > 0 then
  local top = number(call('GET', fence_key) or '0')
  if not top then return bad_fence() end
  -- Not above what an acquire could raise it to. A ballot beyond that is rejected now, but not later, as the master's
  -- time passes. Clients propose ballots near the masters' time, so it takes a clock that is 15 s wrong.
  if ballot > top and ballot <= math.max(now, top) + window then raise(fence_key, ARGV[2]) end
end
if call('EXISTS', queue) == 0 then return present end
drop()
local held = holder()
if not held then wake() elseif not writes(held) then invite() end
return present
