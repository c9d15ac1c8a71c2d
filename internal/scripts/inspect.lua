-- Tells who holds a name on this master, and who waits for it. Writes nothing.
--
-- KEYS  1 lock   2 fence   3 queue   4 admission record
-- ARGV  none
-- Reply {{fields of the lock}, ms left (-2: free), fence, time us, record or '', waiters, {the first ten}}
--
-- Safe to repeat: it only reads. Of a hash that is not ours one page is read, whatever its size.
local fields, left = {}, redis.call('PTTL', KEYS[1])
if left ~= -2 then fields = redis.call('HSCAN', KEYS[1], 0)[2] end
local t = redis.call('TIME')
local fence, record = redis.call('GET', KEYS[2]) or '0', redis.call('GET', KEYS[4]) or ''
local waiters, first = redis.call('ZCARD', KEYS[3]), redis.call('ZRANGE', KEYS[3], 0, 9)
return {fields, left, fence, t[1] * 1000000 + t[2], record, waiters, first}
