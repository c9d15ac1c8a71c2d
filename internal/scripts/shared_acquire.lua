-- Acquires a share of one name for one lease: a reader's share, together with other readers, or the writer's, alone.
--
-- KEYS  1 lock (hash; see doc.go for its fields); the other keys of the name begin with this key   2 admission record
-- ARGV  1 stamp of the admission record that the connection expects; '' without the restart guard
--       2 lease id   3 life of the keys in ms: the TTL plus 75 s   4 first ballot   5 last ballot
--       6 until, the client's estimate of the masters' time plus the TTL, of 16 digits
--       7 mode, followed by its arguments; absent for an acquire without a ticket:
--         acquire     8 waiter   9 rank     '' for no waiter; less is earlier
--         repair      8 previous            the id of the writer's lease that becomes this reader's, or absent, or ''
--         downgrade   8 previous            the same
--       10 the client's estimate of the masters' time, if the first ballot is above that, as in acquire.lua
-- Reply 1                                               granted
--       {2, ms left, 0, {id, '1'}, place, fence, time us}   held: by a writer; by readers, if the caller is a
--                                                       writer, or if another waiter comes before the caller
--       {2, ms left, 1, {}, place, fence, time us}      free, and another waiter is first
--       {3, place, fence, time us}     stale: the first ballot is not above the fence, or at least 15 s old
--       {4, place, fence, time us}     ahead: the last ballot is too far in the future
--       {5, ms left (-2: free), fence, time us}         missing: no writer's lease here to become a reader's
--       {6, record or '', time us}     abstained: the admission record is not the one that the caller expects
--       {8, kind, time us}             the name is of another kind
--
-- A reader's ballot must be above the fence, which writers raise. A writer's ballot must also be above the readers'
-- fence. So readers do not make the acquires of other readers stale, and a writer's token is larger than all earlier
-- tokens.
--
-- A downgrade may be sent in several rounds. Each granted round prolongs the share, because the validity counts from
-- that round, and raises the readers' fence to the ballot of that round, which is the token if the round wins.
--
-- Safe to repeat. If the lease has a share, the share does not change and the reply is 1 again. If a writer's share has
-- ended, the fence refuses a late message. A reader's acquire that is repeated after its release may create a share
-- without a holder, which lasts until it expires; to prevent this, a release that an acquire may follow raises the
-- fence. A full master refuses the first write for a lease. Each mode expects the admission record that the caller had
-- read before its round began, as in acquire.lua. Repair and downgrade also work in quarantine, if the expected record
-- is that of the quarantine.
local call, lock, marks = redis.call, KEYS[1], {'kind', 'readers-writer'}
-- include common.lua
-- include shared_common.lua
-- include stamp.lua
if not expected then return {6, call('GETRANGE', KEYS[2], 0, 65535), now} end
if other then return other end
local id, life, mode = ARGV[2], tonumber(ARGV[3]), ARGV[7] or 'acquire'
local first, last, writer = tonumber(ARGV[4]), tonumber(ARGV[5]), writes(ARGV[2])
local waiter, rank, previous
if mode == 'acquire' then waiter, rank = ARGV[8] ~= '' and ARGV[8], tonumber(ARGV[9] or 0) else previous = ARGV[8] end
local reads, time = call('HGET', lock, 'reads') or '0', math.min(now, tonumber(ARGV[10] or first))
if not string.find(reads, '^%d+$') then return redis.error_reply('BADFENCE the fence of this name is not a number') end
if writer and tonumber(reads) > top then fence, top = reads, tonumber(reads) end
queued = queued and drop()
-- Only an acquire removes expired shares: a request without a ballot knows no clock but this master's.
local expired = call('ZRANGEBYSCORE', shares, '-inf', string.format('(%.0f', time), 'LIMIT', 0, 500)
if #expired > 0 then call('ZREM', shares, unpack(expired)) end
local held, wait = holder(time)
local replaces = previous and ends(previous, time) > 0
local mine = held and ends(id, time) or 0
if mine > 0 and mode ~= 'downgrade' then return 1 end
if mode == 'downgrade' and mine == 0 and not replaces then
  return {5, held and math.ceil(wait / 1000) or -2, fence, now}
end
local taken = held and not replaces and mine == 0
local refused, free = taken and (writer or writes(held)), 0
if not refused and queued and mode == 'acquire' then
  local counts
  if held then counts = invite(waiter, rank) else counts = wake(waiter, rank) end
  if counts then refused, wait, free = true, math.min(counts, wait or counts), held and 0 or 1 end
end
if refused then
  return {2, math.ceil(wait / 1000), free, held and {held, '1'} or {}, join(waiter, rank, first), fence, now}
end
-- A quarantine lasts at least two windows, so at its end each ballot that the master may have accepted earlier is
-- stale, even one of exactly now - window.
if first <= top or first <= now - window then return {3, join(waiter, rank, first), fence, now} end
-- A single ballot may follow a fence that is itself ahead: after clocks that were ahead are corrected, no client waits.
local latest = now + window
if first == last and top > now then latest = top + window end
if last > latest then return {4, join(waiter, rank, first), fence, now} end
share(id, mine, life, ARGV[6])
if replaces then call('ZREM', shares, previous) end
local raises = writer and 'fence' or last > tonumber(reads) and 'reads'
if left == -2 then call('HSET', lock, 'fence', fence, unpack(marks)) end
if raises then call('HSET', lock, raises, ARGV[5]) end
prolong(math.max(life, fence_life(last)))
if queued and waiter then leave(waiter) end
if queued and not writer then invite() end
return 1
