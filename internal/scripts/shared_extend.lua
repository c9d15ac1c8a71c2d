-- Prolongs the share of a grant where it is.
--
-- KEYS  1 lock   2 fence   3 reads (the readers' fence)   4 admission record
-- ARGV  1 stamp of the admission record that the connection expects; '' when the guard is off   2 grant id
--       3 TTL in ms; 0 leaves the time as it is   4 epoch
-- Reply 1                                              still there; at least the TTL is left, never less than before
--       {5, ms left (-2: free), fence, time us}        missing; ms left is the time of others; the larger fence
--       {7, record, time us}                           refused: the TTL is too long, or the epoch is an old one
--
-- Safe to repeat: it sets, never adds; it never creates, and never shortens. It works in quarantine: a share that is
-- here is here. A full master refuses it: unlike the key's time, the time of a share is data.
local lock, ttl, t = KEYS[1], tonumber(ARGV[3]), redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local ends = tonumber(redis.call('ZSCORE', lock, ARGV[2]) or 0)
if ends <= now then
  local fence, reads = redis.call('GET', KEYS[2]) or '0', redis.call('GET', KEYS[3]) or '0'
  if (tonumber(reads) or 0) > (tonumber(fence) or 0) then fence = reads end
  return {5, redis.call('PTTL', lock), fence, now}
end
if ARGV[1] ~= '' then
  local there = redis.call('GET', KEYS[4]) or ''
  if string.sub(there, 1, #ARGV[1]) ~= ARGV[1] and there ~= '' then
    local epoch, longest = string.match(there, '^v3 .* epoch=(%d+) .*longest=(%d+) ')
    if not epoch then return redis.error_reply('BADRECORD the admission record of this master cannot be read') end
    if ttl > tonumber(longest) or tonumber(ARGV[4]) < tonumber(epoch) then return {7, there, now} end
  end
end
if ends < now + ttl * 1000 then redis.call('ZADD', lock, now + ttl * 1000, ARGV[2]) end
if ttl > 0 and redis.call('PTTL', lock) < ttl then redis.call('PEXPIRE', lock, ARGV[3]) end
return 1
