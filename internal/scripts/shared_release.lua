-- Ends shares of one name, removes a waiter from the queue or puts it back, and wakes the next waiter.
--
-- KEYS  1 lock; the other keys of the name begin with this key, as in shared_acquire.lua
-- ARGV  1 lease id, '' if only a waiter leaves. Arguments after the last one that is needed are omitted:
--       2 the largest ballot that was sent with the leases, if an acquire may arrive after the release, or '0'
--       3 and 4 '0': shares have no minimum hold
--       5 waiter, '' for none   6 rank of the waiter, if it is put back into the queue; '' if it leaves
--       7 with a rank: a ballot of the attempt that is rolled back, or the masters' present time
--       8... further lease ids
-- Reply 1 if at least one of the leases existed, otherwise 0
--
-- Safe to repeat: a repeated release finds no share, the waiter has its place or has left, and the fence is high
-- enough. The next waiter may be woken again, which costs that waiter a round. The ballot raises the common fence,
-- even if the lease is a reader's, so that the fence rejects the acquire of this reader if it arrives later. The fence
-- may also reject a concurrent acquire of another reader, which then retries with a larger ballot.
local call, lock, marks = redis.call, KEYS[1], {'kind', 'readers-writer'}
-- include common.lua
-- include shared_common.lua
if other then return 0 end
local present, ballot, waiter, rank = 0, tonumber(ARGV[2] or 0), ARGV[5] or '', ARGV[6] or ''
if ARGV[1] ~= '' then present = math.min(1, call('ZREM', shares, ARGV[1], unpack(ARGV, 8))) end
if waiter ~= '' and (rank == '' or join(waiter, rank, tonumber(ARGV[7])) < 0) then leave(waiter) end
if ballot > 0 then raise(ballot) end
if call('EXISTS', queue) == 0 or not drop() then return present end
-- A roll-back counts with the ballot of its attempt: see release.lua.
local held = holder(rank ~= '' and math.min(now, tonumber(ARGV[7])) or now)
if not held then wake() elseif not writes(held) then invite() end
return present
