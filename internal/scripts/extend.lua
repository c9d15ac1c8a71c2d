-- Extends an existing lease, and writes its depth and its value: for an extension, a re-entry, or an inner release.
--
-- KEYS  1 lock   2 admission record
-- ARGV  1 stamp of the admission record that the connection expects; '' without the restart guard   2 lease id
--       3 TTL in ms; 0: no change   4 depth, an absolute number, with '~' if the lease may linger   5 epoch
--       6 ' version value', the version with 16 digits; absent: no change
-- Reply 1                                              extended: at least the TTL is left, never less than before
--       {5, ms left (-2: free), fence, time us}        missing: ms left is that of another lease, or of a lease that
--                                                      was unlocked and has a minimum hold (depth 0)
--       {7, record, time us}                           refused: the TTL is too long, or the epoch is too old
--
-- Safe to repeat: the script sets depth and TTL to absolute numbers, creates no lease, and shortens no TTL. It works in
-- quarantine, because a lease that exists was not forgotten. A value replaces only a value with a smaller version.
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
-- A full master refuses the new depth and the new value, which only inspections show. The lease is extended
-- nevertheless. A call that only writes a value (TTL 0) fails.
if newer or depth ~= ARGV[4] then
  local done = redis.pcall('HSET', lock, ARGV[2], ARGV[4] .. rest)
  if type(done) == 'table' and (newer and ttl == 0 or not string.find(done.err, '^%-?OOM')) then return done end
end
if ttl > 0 and call('PTTL', lock) < ttl then call('PEXPIRE', lock, ARGV[3]) end
return 1
