-- Acquires a share of one name for one lease: a reader's, beside other readers, or a writer's, alone. The first line
-- that applies is the answer.
--
-- KEYS  1 lock (sorted set: lease id by the time at which its share ends)   2 admission record
--       The other keys of a name begin with the lock's: lock:fence, lock:reads, lock:queue, lock:waiters.
-- ARGV  1 stamp of the admission record that the connection expects; '' when the guard is off
--       2 lease id   3 TTL in ms   4 first ballot   5 last ballot
--       6 mode, absent for an acquire without a ticket, and then its own arguments:
--         mode        7          8
--         acquire     waiter     rank       less is earlier
--         repair      previous              the id of the writer's lease that becomes this reader's, or absent
--         downgrade   previous              the same
-- Reply 1                                               granted
--       {2, ms left, 0, {id, '1'}, place, fence, time us}   held: by a writer; for a writer by readers; or another
--                                                       waiter comes before this reader
--       {2, ms left, 1, {}, place, fence, time us}      free, and another waiter is first
--       {3, place, fence, time us}     stale: the ballot is not above the fence, or 15 s old
--       {4, place, fence, time us}     ahead: the ballot is too far in the future
--       {5, ms left (-2: free), fence, time us}         missing: no writer's lease here to become a reader's
--       {6, record or '', time us}     abstained: the admission record is another than the caller expects
--
-- A reader's ballot must be above the fence, which writers raise. A writer's must be above the readers' fence, too. So
-- readers do not make each other's asks stale, and a writer's token is larger than those of all before it.
--
-- A downgrade is sent in several rounds. Each round that is granted prolongs the share, since the validity counts from
-- that round, and raises the readers' fence to its ballot, which is the token if the round wins.
--
-- Safe to repeat. If the lease has its share, nothing is written and the answer is 1 again. If a writer's share has
-- ended, the fence refuses a late message. A reader's acquire that is repeated after its release may create a share
-- without a holder, until it expires; a release that an acquire may follow raises the fence instead. The first write
-- for a lease is one that a master without free memory refuses. Each mode expects the admission record that the caller
-- had read before its round began, as in acquire.lua. Repair and downgrade also work in quarantine, if their round saw
-- that quarantine.
local call, lock = redis.call, KEYS[1]
-- include common.lua
-- include shared_common.lua
-- include stamp.lua
if not expected then return {6, call('GETRANGE', KEYS[2], 0, 65535), now} end
local id, ttl, mode = ARGV[2], tonumber(ARGV[3]), ARGV[6] or 'acquire'
local first, last, writer = tonumber(ARGV[4]), tonumber(ARGV[5]), writes(ARGV[2])
local waiter, rank, previous
if mode == 'acquire' then waiter, rank = ARGV[7], tonumber(ARGV[8] or 0) else previous = ARGV[7] end
local fence, reads = call('GET', fence_key) or '0', call('GET', reads_key) or '0'
if not (number(fence) and number(reads)) then return bad_fence() end
if writer and number(reads) > number(fence) then fence = reads end
local top = number(fence)
local queued = call('EXISTS', queue) == 1
if queued then drop() end
local held, left = holder()
local replaces = previous and ends(previous) > 0
local mine = held and ends(id) or 0
if mine > 0 and mode ~= 'downgrade' then return 1 end
if mode == 'downgrade' and mine == 0 and not replaces then
  return {5, call('PTTL', lock), fence, now}
end
local other = held and not replaces and mine == 0
local refused, wait, free = other and (writer or writes(held)), left, 0
if not refused and queued and mode == 'acquire' then
  local counts
  if held then counts = invite(waiter, rank) else counts = wake(waiter, rank) end
  if counts then refused, wait, free = true, math.min(counts, left or counts), held and 0 or 1 end
end
if refused then
  return {2, math.ceil(wait / 1000), free, held and {held, '1'} or {}, join(waiter, rank, first), fence, now}
end
-- The quarantine is at least two windows long, so it outlasts every ballot that a master can have accepted before: one
-- of exactly now - 15 s is refused.
if first <= top or first <= now - window then return {3, join(waiter, rank, first), fence, now} end
-- One ballot may follow a fence that is itself ahead: clocks that were ahead and are set right must cost no waiting.
local latest = now + window
if first == last and top > now then latest = top + window end
if last > latest then return {4, join(waiter, rank, first), fence, now} end
if mine < now + ttl * 1000 then share(id, ttl) end
if replaces then call('ZREM', lock, previous) end
if writer then raise(fence_key, ARGV[5]) elseif last > number(reads) then raise(reads_key, ARGV[5]) end
if queued and waiter then leave(waiter) end
if queued and not writer then invite() end
return 1
