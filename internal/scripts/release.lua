-- Ends leases of one name, now or after a minimum hold, removes a waiter from the queue or puts it back, and wakes the
-- next waiter.
--
-- KEYS  1 lock; the other keys of the name begin with this key, as in acquire.lua
-- ARGV  1 lease id, '' if only a waiter leaves. Arguments after the last one that is needed are omitted:
--       2 the largest ballot that was sent with the leases, if an acquire may arrive after the release, or '0'
--       3 ms for which the leases are kept, unlocked and without a holder; '0': the leases end now
--       4 waiter, '' for none   5 rank of the waiter, if it is put back into the queue; '' if it leaves
--       6 with a rank: a ballot of the attempt that is rolled back, or the masters' present time
--       7... further lease ids
-- Reply 1 if at least one of the leases existed, otherwise 0
--
-- Safe to repeat: a repeated release finds no lease, or a lease that ends no later than before; the waiter has its
-- place or has left, and the fence is high enough. The next waiter may be woken again, which costs that waiter a
-- round. No later step can undo the deletion, so a release also succeeds on a full master and without rights to the
-- channel. Redis deletes a hash with its last field, so the lock is free when its lease is deleted.

-- The common case: one lease ends, and no client waits.
local call, lock = redis.call, KEYS[1]
local present = ARGV[2] and 0 or call('HDEL', lock, ARGV[1])
if present == 1 and call('EXISTS', lock .. ':queue') == 0 then return 1 end
-- include common.lua
local ballot, keep, waiter, rank = tonumber(ARGV[2] or 0), tonumber(ARGV[3] or 0), ARGV[4] or '', ARGV[5] or ''
if keep > 0 then
  for _, id in ipairs({ARGV[1], unpack(ARGV, 7)}) do
    local lease = call('HGET', lock, id)
    if lease then
      present = 1
      redis.pcall('HSET', lock, id, '0' .. (string.match(lease, ' .*') or ''))
      if call('PTTL', lock) > keep then call('PEXPIRE', lock, ARGV[3]) end
    end
  end
elseif ARGV[2] and ARGV[1] ~= '' then
  present = math.min(1, call('HDEL', lock, ARGV[1], unpack(ARGV, 7)))
end
if present == 1 and ballot == 0 and waiter == '' and call('EXISTS', queue) == 0 then return 1 end
if waiter ~= '' and (rank == '' or join(waiter, rank, tonumber(ARGV[6])) < 0) then leave(waiter) end
if ballot > 0 then
  local top = number(call('GET', fence_key) or '0')
  if not top then return bad_fence() end
  -- Do not raise the fence above what an acquire could raise it to. An acquire with a larger ballot is rejected now,
  -- and may be granted later. This needs a clock that is 15 s wrong: clients propose ballots near the masters' time.
  if ballot > top and ballot <= math.max(now, top) + window then raise(fence_key, ARGV[2]) end
end
if call('EXISTS', queue) == 1 and call('EXISTS', lock) == 0 then
  drop()
  wake()
end
return present
