-- Prolongs a hold where it is present, and writes its depth: extension, re-entry, and release of an inner lock.
--
-- KEYS  1 lock   2 bar   3 marker
-- ARGV  1 the marker that the caller expects; '' when the guard is off   2 hold id
--       3 TTL in ms; 0 leaves the time as it is   4 depth, an absolute number   5 epoch of the caller's set of masters
-- Reply 1                              still mine; the TTL is at least what was asked for, never less than before
--       {5, bar, time us, ms left}     missing; ms left is the time of another's hold, -2 where the name is free
--       {7, marker, time us}           refused: the TTL is above the guard time, or the epoch is an old one
--
-- Safe to repeat: it sets, never adds; it never creates, and never shortens. It works in quarantine: a hold that is
-- here is here.
local lock = KEYS[1]
local depth = redis.call('HGET', lock, ARGV[2])
if not depth then
  local t = redis.call('TIME')
  return {5, redis.call('GET', KEYS[2]) or '0', t[1] * 1000000 + t[2], redis.call('PTTL', lock)}
end
local ttl = tonumber(ARGV[3])
if ARGV[1] ~= '' then
  local marker = redis.call('GET', KEYS[3])
  if marker and marker ~= ARGV[1] then
    local guard, epoch = string.match(marker, ' guard=(%d+) epoch=(%d+) ')
    if not guard then return redis.error_reply('BADMARKER the admission marker cannot be read') end
    if ttl > tonumber(guard) or tonumber(ARGV[5]) < tonumber(epoch) then
      local t = redis.call('TIME')
      return {7, marker, t[1] * 1000000 + t[2]}
    end
  end
end
if depth ~= ARGV[4] then redis.call('HSET', lock, ARGV[2], ARGV[4]) end
if ttl > 0 and redis.call('PTTL', lock) < ttl then redis.call('PEXPIRE', lock, ARGV[3]) end
return 1
