-- Returns the holders and the waiters of a name on this master. Writes nothing.
--
-- KEYS  1 lock   2 admission record
-- ARGV  none
-- Reply {{fields of the lock}, ms left (-2: free), fence, time us, record or '', waiters, {the first ten},
--        shares, {the first hundred, each with the time us at which it ends}}
--
-- Safe to repeat: it only reads. Of a hash that is not ours one page is read, whatever its size. A lock with readers is
-- a sorted set and has no fields.
local fields, shares, number, left = {}, {}, 0, redis.call('PTTL', KEYS[1])
local t = redis.call('TIME')
if left ~= -2 then
  local page = redis.pcall('HSCAN', KEYS[1], 0)
  if not page.err then
    fields = page[2]
  else
    local now = '(' .. t[1] .. string.format('%06d', t[2])
    shares = redis.call('ZRANGEBYSCORE', KEYS[1], now, '+inf', 'WITHSCORES', 'LIMIT', 0, 100)
    if shares[1] then number = redis.call('ZCARD', KEYS[1]) - redis.call('ZRANK', KEYS[1], shares[1]) end
  end
end
local fence, record = redis.call('GET', KEYS[1] .. ':fence') or '0', redis.call('GET', KEYS[2]) or ''
local waiters, first = redis.call('ZCARD', KEYS[1] .. ':queue'), redis.call('ZRANGE', KEYS[1] .. ':queue', 0, 9)
return {fields, left, fence, t[1] * 1000000 + t[2], record, waiters, first, number, shares}
