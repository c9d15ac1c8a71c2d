-- Takes the lock of one name for one grant. The first check below that applies gives the answer.
--
-- KEYS  1 lock (hash: grant id -> depth, token, ballot)   2 fence   3 queue   4 waiters   5 admission record
-- ARGV  1 stamp of the admission record that the connection expects; '' when the guard is off
--       2 grant id   3 TTL in ms   4 first ballot   5 last ballot   6 mode: 'acquire', 'repair' or 'import'
--       acquire with a ticket: 7 waiter   8 rank (less is earlier)
--       repair: 7 token   8 depth   optionally 9 id of the grant that is replaced
--       import: 7 id of the grant that is replaced
-- Reply 1                                               granted
--       {2, ms left, 0, {fields of the lock}, place, fence, time us}   held by another
--       {2, ms left, 1, {}, place, fence, time us}      free, and another waiter is first
--       {3, place, fence, time us}     stale: the ballot is not above the fence, or 15 s old
--       {4, place, fence, time us}     ahead: the ballot is too far in the future
--       {5, ms left (-2: free), fence, time us}         missing: nothing here to import
--       {6, record or '', time us}     abstained: the admission record is another than the caller expects
--       place is the caller's in the queue from 0; -1 where it has no ticket, or its ask is older than 20 s
--
-- Safe to repeat. Where the grant is there with this ballot, nothing is written and the answer is 1 again. Where it was
-- there and has ended, the fence refuses the ballot: the fence is at least that ballot. A message that was refused
-- may be granted when it comes once more; the release that follows an ask of unknown outcome ends that.
-- The first write of a grant is one that a full master refuses, so a script that fails for lack of memory has granted
-- nothing.
-- Each mode expects the admission record that the caller had read before its round began: a master that may have lost
-- data since then has another record, and rejects the call. A repair also works in quarantine, if its round saw that
-- quarantine.
local stamp, id, ttl, mode = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[6]
local first, last = tonumber(ARGV[4]), tonumber(ARGV[5])
local token, depth, waiter, rank, previous = ARGV[4], '1', nil, nil, nil
if mode == 'acquire' then waiter, rank = ARGV[7], tonumber(ARGV[8])
elseif mode == 'repair' then token, depth, previous = ARGV[7], ARGV[8], ARGV[9]
else previous = ARGV[7] end
local t, window = redis.call('TIME'), 15000000
local now = t[1] * 1000000 + t[2]
local there = stamp ~= '' and (redis.call('GET', KEYS[5]) or '') or ''
if string.sub(there, 1, #stamp) ~= stamp then return {6, there, now} end
local raw = redis.call('GET', fence) or '0'
if not string.find(raw, '^%d+$') then return redis.error_reply('BADFENCE the fence of this name is not a number') end
local top = tonumber(raw)
local queued = redis.call('EXISTS', queue) == 1
if queued then drop(now) end
local left = redis.call('PTTL', lock)
local mine = left ~= -2 and redis.call('HEXISTS', lock, id) == 1
local replaces = left ~= -2 and previous and redis.call('HEXISTS', lock, previous) == 1
if mine then
  local ballot = tonumber(redis.call('HGET', lock, 'ballot') or 0)
  if last == ballot then return 1 end
  if last < ballot then return {3, join(now, waiter, rank, first), raw, now} end
elseif mode == 'import' and not replaces then
  return {5, left, raw, now}
elseif left ~= -2 and not replaces then
  return {2, left, 0, redis.call('HSCAN', lock, 0)[2], join(now, waiter, rank, first), raw, now}
elseif queued and mode == 'acquire' then
  local told = tell(now, waiter, rank)
  if told then return {2, math.ceil(told / 1000), 1, {}, join(now, waiter, rank, first), raw, now} end
end
-- The quarantine is at least two windows long, so it outlasts every ballot that a master can have accepted before: one
-- of exactly now - 15 s is refused.
if first <= top or first <= now - window then return {3, join(now, waiter, rank, first), raw, now} end
-- One ballot may follow a fence that is itself ahead: clocks that were ahead and are set right must cost no waiting.
local latest = (first == last and math.max(now, top) or now) + window
if last > latest then return {4, join(now, waiter, rank, first), raw, now} end
redis.call('HSET', lock, id, depth, 'token', token, 'ballot', ARGV[5])
if left < ttl then redis.call('PEXPIRE', lock, ARGV[3]) end
if replaces then redis.call('HDEL', lock, previous) end
raise(fence, now, ARGV[5])
if queued and waiter then leave(waiter) end
return 1
