-- Extends a lease that is there, and writes its depth and its value: extension, re-entry, release of an inner lock.
--
-- KEYS  1 lock   2 admission record
-- ARGV  1 stamp of the admission record that the connection expects; '' without the restart guard   2 lease id
--       3 TTL in ms; 0 leaves the time as it is   4 depth, an absolute number, with '~' if it may linger   5 epoch
--       6 ' version value', the version with 16 digits; absent: the value stays as it is
-- Reply 1                                              still there; at least the TTL is left, never less than before
--       {5, ms left (-2: free), fence, time us}        missing; ms left is the time of another lease, or of one that
--                                                      was unlocked and is kept for a while (depth 0)
--       {7, record, time us}                           refused: the TTL is too long, or the epoch is an old one
--
-- Safe to repeat: it sets, never adds; it never creates, and never shortens. It works in quarantine: a lease that is
-- here was not forgotten. A value is written unless one of the same or a later version is there.
local call, lock, ttl, epoch = redis.call, KEYS[1], tonumber(ARGV[3]), ARGV[5]
local depth, rest = string.match(call('HGET', lock, ARGV[2]) or '', '^(%d+~?)(.*)$')
if not depth or depth == '0' then
  -- include now.lua
  return {5, call('PTTL', lock), call('GET', lock .. ':fence') or '0', now}
end
-- include extend_common.lua
local numbers, value = string.match(rest, '^( %d+ %d+)(.*)$')
local newer = ARGV[6] and string.sub(ARGV[6], 2, 17) > string.sub(value or '', 2, 17)
if newer then rest = (numbers or rest) .. ARGV[6] end
-- A full master refuses the new depth and the new value, which only people read. The lock is extended all the same. A
-- call that only writes a value (TTL 0) fails then.
if newer or depth ~= ARGV[4] then
  local done = redis.pcall('HSET', lock, ARGV[2], ARGV[4] .. rest)
  if type(done) == 'table' and (newer and ttl == 0 or not string.find(done.err, '^%-?OOM')) then return done end
end
if ttl > 0 and call('PTTL', lock) < ttl then call('PEXPIRE', lock, ARGV[3]) end
return 1
