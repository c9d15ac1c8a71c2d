-- Ends leases of one name, now or after a minimum hold, removes a waiter from the queue or puts it back, and wakes the
-- next waiter.
--
-- KEYS  1 lock; the other keys of the name begin with this key, as in acquire.lua
-- ARGV  1 lease id, '' if only a waiter leaves. Arguments after the last one that is needed are omitted:
--       2 the largest ballot that was sent with the leases, if an acquire may arrive after the release, or '0'
--       3 life of the key in ms if the leases are kept, unlocked and without a holder: how long they are kept, plus
--         75 s; '0': the leases end now   4 until, the deadline of kept leases in ballots, of 16 digits, or '0'
--       5 waiter, '' for none   6 rank of the waiter, if it is put back into the queue; '' if it leaves
--       7 with a rank: a ballot of the attempt that is rolled back, or the masters' present time
--       8... further lease ids
-- Reply 1 if at least one of the leases existed, otherwise 0
--
-- Safe to repeat: a repeated release finds no lease, or a lease that ends no later than before; the waiter has its
-- place or has left, and the fence is high enough. The next waiter may be woken again, which costs that waiter a
-- round. No later step can undo the deletion, so a release also succeeds on a full master and without rights to the
-- channel. The hash keeps its fence, and its life, when a lease is deleted.

-- The common case: one lease ends, and no client waits.
local call, lock = redis.call, KEYS[1]
local present = ARGV[2] and 0 or call('HDEL', lock, ARGV[1])
if present == 1 and call('HLEN', lock) == 1 then return 1 end
local marks = {}
-- include common.lua
if kind then return 0 end
local ballot, keep, waiter, rank = tonumber(ARGV[2] or 0), tonumber(ARGV[3] or 0), ARGV[5] or '', ARGV[6] or ''
if keep > 0 then
  for _, id in ipairs({ARGV[1], unpack(ARGV, 8)}) do
    local ballots, ends = string.match(call('HGET', lock, id) or '', '^%d+~?( %d+ %d+ )(%d+)')
    if ballots then
      present = 1
      redis.pcall('HSET', lock, id, '0' .. ballots .. (ARGV[4] < ends and ARGV[4] or ends))
      if left == -1 or left - kept > keep - 75000 then call('PEXPIRE', lock, keep - 75000 + kept) end
    end
  end
elseif ARGV[2] and ARGV[1] ~= '' then
  present = math.min(1, call('HDEL', lock, ARGV[1], unpack(ARGV, 8)))
end
if waiter ~= '' and (rank == '' or join(waiter, rank, tonumber(ARGV[7])) < 0) then leave(waiter) end
if ballot > 0 then raise(ballot) end
-- Reports whether no lease is left, or it had expired before this script: it stays expired, although raise lets the key
-- live longer. A lease that has expired by one clock only refuses the waiter that is woken, and the roll-back of this
-- attempt would wake the next one, and so on without a pause. So a roll-back counts with the ballot of its attempt.
local function free()
  local number = leases()
  if number ~= 1 or left >= kept then return number < 1 end
  local all, time = call('HGETALL', lock), rank ~= '' and math.min(now, tonumber(ARGV[7])) or now
  for i = 2, #all, 2 do
    if tonumber(string.match(all[i], '^%d+~? %d+ %d+ (%d+)') or 0) >= time then return false end
  end
  return true
end
if call('EXISTS', queue) == 1 and free() and drop() then wake() end
return present
