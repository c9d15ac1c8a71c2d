-- Acquires the lock of one name for one lease.
--
-- KEYS  1 lock (hash; see doc.go for its fields); the other keys of the name begin with this key   2 admission record
-- ARGV  1 stamp of the admission record that the connection expects; '' without the restart guard
--       2 lease id   3 life of the key in ms: the TTL plus 75 s
--       4 first ballot   5 last ballot, both of 16 digits, at most 1 s apart
--       6 the lease: 'depth token ballot until', and for a repair perhaps ' version value'. until is the client's
--         estimate of the masters' time, plus the TTL; depth ends in '~' if the lease may linger
--       7 mode, followed by its arguments; absent for an acquire without a ticket:
--         acquire   8 waiter, '' for none   9 rank (less is earlier)
--         repair    8 previous, the id of the lease that is replaced; absent or '' for none
--         import    8 previous
--       10 the client's estimate of the masters' time, of 16 digits, if the first ballot is above it: a ballot that
--         follows a fence that is ahead does not tell the time. Else absent, and the first ballot is the estimate
-- Reply 1                                               granted
--       {2, ms left, 0, {id, 'depth token ballot'}, place, fence, time us}   held by another lease
--       {2, ms left, 1, {}, place, fence, time us}      free, and another waiter is first
--       {3, place, fence, time us}     stale: the first ballot is not above the fence, or at least 15 s old
--       {4, place, fence, time us}     ahead: the last ballot is too far in the future
--       {5, ms left (-2: free), fence, time us}         missing: no lease here to import
--       {6, record or '', time us}     abstained: the admission record is not the one that the caller expects
--       {8, kind, time us}             the name is of another kind
--       place is the caller's index in the queue; -1 without a ticket, or if the first ballot is older than 20 s
--
-- A lease that may linger can be kept by its owner without a holder. If the script refuses another lease because of
-- such a lease, it publishes a message to the inbox of the owner, which then releases the lease if it has no holder.
--
-- Safe to repeat. If the lease exists with this ballot, the lease does not change and the reply is 1 again. If the
-- lease has ended, the fence rejects the ballot, because the fence is at least that ballot. A refused message may be
-- granted if it is delivered again; the release that follows an attempt of unknown outcome ends such a lease.
-- The first write is a command that a full master refuses, so a script that fails for lack of memory grants nothing. If
-- the script has removed a waiter before, the master refuses no later write of this script, so a full master may grant.
-- If the user lacks the right to a later write, no life is set: what remains ends at its deadline, or with the old key.
-- Each mode expects the admission record that the caller had read before its round began: a master that may have lost
-- data since then has another record, and rejects the call. A repair also works in quarantine, if the expected record
-- is that of the quarantine.

-- The common case: the name is free, no client waits, this master votes, and the ballots are new.
local call, lock, args = redis.call, KEYS[1], ARGV
local id, first, last = args[2], args[4], args[5]
local fields = call('HLEN', lock)
local fence = fields == 0 and '0000000000000000' or fields == 1 and call('HGET', lock, 'fence')
-- include stamp.lua
if fence and #fence == 16 and first > fence and expected and not args[7] then
  local ahead = first - call('TIME')[1] * 1000000 -- up to 1 s too much; the last ballot is at most 1 s above the first
  if ahead > -14000000 and ahead < 14000000 then
    call('HSET', lock, 'fence', last, id, args[6])
    call('PEXPIRE', lock, args[3])
    return 1
  end
end
local marks = {}
-- include common.lua
if not expected then return {6, call('GETRANGE', KEYS[2], 0, 65535), now} end
-- include holder.lua
-- Returns the ms after which the lease has expired for this request: by the later of both deadlines.
local function remaining(time) return math.max(1, left - kept, math.floor((ends - time) / 1000) + 1) end
local lease, mode, waiter, rank, previous = ARGV[6], ARGV[7] or 'acquire', nil, nil, nil
if mode == 'acquire' then waiter, rank = ARGV[8] ~= '' and ARGV[8], tonumber(ARGV[9]) else previous = ARGV[8] end
local asked, ballot, time, gone = tonumber(first), tonumber(last), tonumber(ARGV[10] or first), nil
queued = queued and drop()
if holder and left < kept and time > ends then gone, holder = holder, nil end
local replaces = holder and holder == previous
if holder == id then
  local accepted, before, value = string.match(text, '^%S+ %d+ (%d+) (%d+)(.*)$')
  accepted = tonumber(accepted)
  if ballot <= accepted then return ballot == accepted and 1 or {3, join(waiter, rank, asked), fence, now} end
  -- Keep the later deadline, and the later version of the value.
  local start, later, newer = string.match(lease, '^(%S+ %d+ %d+ )(%d+)(.*)$')
  if before > later then later = before end
  if string.sub(value, 2, 17) > string.sub(newer, 2, 17) then newer = value end
  lease = start .. later .. newer
elseif mode == 'import' and not replaces then return {5, holder and remaining(time) or -2, fence, now}
elseif holder and not replaces then
  if string.find(text, '^%d+~') then publish(holder, '') end
  return {2, remaining(time), 0, {holder, string.match(text, '^%S+ %d+ %d+')}, join(waiter, rank, asked), fence, now}
elseif queued and mode == 'acquire' then
  local counts = wake(waiter, rank)
  if counts then return {2, math.ceil(counts / 1000), 1, {}, join(waiter, rank, asked), fence, now} end
end
-- A quarantine lasts at least two windows, so at its end each ballot that the master may have accepted earlier is
-- stale, even one of exactly now - window.
if asked <= top or asked <= now - window then return {3, join(waiter, rank, asked), fence, now} end
-- A single ballot may follow a fence that is itself ahead: after clocks that were ahead are corrected, no client waits.
local latest = (asked == ballot and math.max(now, top) or now) + window
if ballot > latest then return {4, join(waiter, rank, asked), fence, now} end
call('HSET', lock, 'fence', last, id, lease)
if replaces then gone = previous end
if gone and gone ~= id then call('HDEL', lock, gone) end
live(math.max(holder and left - kept or 0, ARGV[3] - 75000), ballot)
if queued and waiter then leave(waiter) end
return 1
