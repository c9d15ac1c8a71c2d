-- Acquires the lock of one name for one lease.
--
-- KEYS  1 lock (hash with one field: lease id -> 'depth token ballot', then perhaps ' version value')
--       2 admission record
--       The other keys of a name begin with the lock's: lock:fence, lock:queue, lock:waiters.
-- ARGV  1 stamp of the admission record that the connection expects; '' without the restart guard
--       2 lease id   3 TTL in ms   4 first ballot   5 last ballot, both of 16 digits
--       6 mode, followed by its arguments; absent for an acquire without a ticket:
--         mode      7          8       9          10
--         acquire   waiter     rank    depth                   waiter and rank (less is earlier) are '' without a
--                                                              ticket; depth is '1~' if the lease may linger, or absent
--         repair    token      depth   previous   value        previous is the id of the lease that is replaced, ''
--                                                              for none; value is ' version value', or absent
--         import    previous
-- Reply 1                                               granted
--       {2, ms left, 0, {id, 'depth token ballot'}, place, fence, time us}   held by another lease
--       {2, ms left, 1, {}, place, fence, time us}      free, and another waiter is first
--       {3, place, fence, time us}     stale: the first ballot is not above the fence, or at least 15 s old
--       {4, place, fence, time us}     ahead: the last ballot is too far in the future
--       {5, ms left (-2: free), fence, time us}         missing: no lease here to import
--       {6, record or '', time us}     abstained: the admission record is not the one that the caller expects
--       place is the caller's index in the queue; -1 without a ticket, or if the first ballot is older than 20 s
--
-- A lease may linger if its depth ends with '~': its owner may keep the lease without a holder. If the script refuses
-- another lease because of such a lease, it publishes a message to the inbox of the owner, which then releases the
-- lease if it has no holder.
--
-- Safe to repeat. If the lease exists with this ballot, the lease does not change and the reply is 1 again. If the
-- lease has ended, the fence rejects the ballot, because the fence is at least that ballot. A refused message may be
-- granted if it is delivered again; the release that follows an attempt of unknown outcome ends such a lease.
-- The first write is a command that a full master refuses, so a script that fails for lack of memory grants nothing.
-- Each mode expects the admission record that the caller had read before its round began: a master that may have lost
-- data since then has another record, and rejects the call. A repair also works in quarantine, if the expected record
-- is that of the quarantine.

-- The common case: this master votes, the name is free, no client waits, and the ballots are new.
local call, lock, id, first, last = redis.call, KEYS[1], ARGV[2], ARGV[4], ARGV[5]
local fence_key = lock .. ':fence'
local fence = call('GET', fence_key) or '0000000000000000'
-- include stamp.lua
if expected and not ARGV[6] and #fence == 16 and first > fence and call('EXISTS', lock, lock .. ':queue') == 0 then
  -- include now.lua
  if first - now > -window and last - now <= window then
    call('HSET', lock, id, '1 ' .. first .. ' ' .. last)
    call('PEXPIRE', lock, ARGV[3])
    call('SET', fence_key, last, 'PX', '75000')
    return 1
  end
end
-- include common.lua
if not expected then return {6, call('GETRANGE', KEYS[2], 0, 65535), now} end
local mode, waiter, rank, depth, token, previous, value = ARGV[6] or 'acquire', nil, nil, nil, nil, nil, nil
if mode == 'acquire' then waiter, rank, depth = unpack(ARGV, 7)
elseif mode == 'repair' then token, depth, previous, value = unpack(ARGV, 7)
elseif mode == 'import' then previous = unpack(ARGV, 7) end
if waiter == '' then waiter = nil else rank = tonumber(rank) end
local ttl, asked, ballot = tonumber(ARGV[3]), tonumber(first), tonumber(last)
local top, queued = number(fence), call('EXISTS', queue) == 1
if not top then return bad_fence() elseif queued then drop() end
local left = call('PTTL', lock)
local lease = left ~= -2 and call('HGET', lock, id)
local replaces = left ~= -2 and previous and call('HEXISTS', lock, previous) == 1
if lease then
  local accepted, kept = string.match(lease, '^%S+ %d+ (%d+)(.*)$')
  accepted = tonumber(accepted or 0)
  if ballot <= accepted then return ballot == accepted and 1 or {3, join(waiter, rank, asked), fence, now} end
  if kept and string.sub(kept, 2, 17) > string.sub(value or '', 2, 17) then value = kept end -- the larger version
elseif mode == 'import' and not replaces then return {5, left, fence, now}
elseif left ~= -2 and not replaces then
  -- A lock has one field of at most 1.5 KB. A hash with several fields is that of another program: do not read it.
  local held = call('HLEN', lock) == 1 and call('HSCAN', lock, 0)[2]
  if not held or #held[1] + #held[2] > 1500 then return redis.error_reply('WRONGTYPE the hash is not a lock') end
  if string.find(held[2], '^%d+~') then publish(held[1], '') end
  held[2] = string.match(held[2], '^%S+ %S+ %S+') or held[2] -- omit the value
  return {2, left, 0, held, join(waiter, rank, asked), fence, now}
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
call('HSET', lock, id, (depth or '1') .. ' ' .. (token or first) .. ' ' .. last .. (value or ''))
if left < ttl then call('PEXPIRE', lock, ARGV[3]) end
if replaces then call('HDEL', lock, previous) end
raise(fence_key, last)
if queued and waiter then leave(waiter) end
return 1
