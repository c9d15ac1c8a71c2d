-- Tells who holds a name on this master. Writes nothing.
--
-- KEYS  1 lock   2 bar   3 marker
-- ARGV  none
-- Reply {hold id or '', depth or '0', ms left (-2 where free), bar, time us, marker or ''}
--
-- Safe to repeat: it only reads. A lock key with more than one field is not ours to read at any length; the first
-- field that a scan gives is told.
local id, depth = '', '0'
local left = redis.call('PTTL', KEYS[1])
if left ~= -2 then
  local page = redis.call('HSCAN', KEYS[1], '0', 'COUNT', '1')[2]
  id, depth = page[1] or '', page[2] or '0'
end
local t = redis.call('TIME')
return {id, depth, left, redis.call('GET', KEYS[2]) or '0', t[1] * 1000000 + t[2], redis.call('GET', KEYS[3]) or ''}
