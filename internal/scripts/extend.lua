-- Prolongs a grant where it is, and writes its depth: extension, re-entry, and release of an inner lock.
--
-- KEYS  1 lock   2 fence   3 admission record
-- ARGV  1 stamp of the admission record that the connection expects; '' when the guard is off   2 grant id
--       3 TTL in ms; 0 leaves the time as it is   4 depth, an absolute number   5 epoch
-- Reply 1                                              still there; at least the TTL is left, never less than before
--       {5, ms left (-2: free), fence, time us}        missing; ms left is the time of another's grant, or of one
--                                                      that was unlocked and is kept for a while (depth 0)
--       {7, record, time us}                           refused: the TTL is too long, or the epoch is an old one
--
-- Safe to repeat: it sets, never adds; it never creates, and never shortens. It works in quarantine: a grant that is
-- here is here.
local lock, ttl = KEYS[1], tonumber(ARGV[3])
local function time()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end
local depth = redis.call('HGET', lock, ARGV[2])
if not depth or depth == '0' then return {5, redis.call('PTTL', lock), redis.call('GET', KEYS[2]) or '0', time()} end
if ARGV[1] ~= '' then
  local there = redis.call('GET', KEYS[3]) or ''
  if string.sub(there, 1, #ARGV[1]) ~= ARGV[1] and there ~= '' then
    local epoch, longest = string.match(there, '^v3 .* epoch=(%d+) .*longest=(%d+) ')
    if not epoch then return redis.error_reply('BADRECORD the admission record of this master cannot be read') end
    if ttl > tonumber(longest) or tonumber(ARGV[5]) < tonumber(epoch) then return {7, there, time()} end
  end
end
-- A full master refuses the new depth, which only people read. The lock is prolonged all the same.
if depth ~= ARGV[4] then
  local done = redis.pcall('HSET', lock, ARGV[2], ARGV[4])
  if type(done) == 'table' and not string.find(done.err, '^%-?OOM') then return done end
end
if ttl > 0 and redis.call('PTTL', lock) < ttl then redis.call('PEXPIRE', lock, ARGV[3]) end
return 1
