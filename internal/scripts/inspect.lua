-- Returns the holders and the waiters of a name on this master. Writes nothing.
--
-- KEYS  1 lock   2 admission record
-- ARGV  none
-- Reply {{fields of the lock}, ms left (-2: free), fence, time us, record or '', waiters, {the first ten},
--        shares, {the first hundred, each with the time us at which it ends}}
--
-- Safe to repeat: it only reads. A hash of another program, which may be large, is not read and is an error. A lock
-- with readers is a sorted set and has no fields.
local fields, shares, number, left = {}, {}, 0, redis.call('PTTL', KEYS[1])
local t = redis.call('TIME')
if left ~= -2 then
  local size = redis.pcall('HLEN', KEYS[1])
  if size == 1 then fields = redis.call('HSCAN', KEYS[1], 0)[2] end
  if type(size) == 'number' then
    if size ~= 1 or #fields[1] + #fields[2] > 1500 then return redis.error_reply('WRONGTYPE the hash is no lock') end
  else
    local now = '(' .. t[1] .. string.format('%06d', t[2])
    shares = redis.call('ZRANGEBYSCORE', KEYS[1], now, '+inf', 'WITHSCORES', 'LIMIT', 0, 100)
    if shares[1] then number = redis.call('ZCARD', KEYS[1]) - redis.call('ZRANK', KEYS[1], shares[1]) end
  end
end
local fence, record = redis.call('GET', KEYS[1] .. ':fence') or '0', redis.call('GETRANGE', KEYS[2], 0, 65535)
local waiters, first = redis.call('ZCARD', KEYS[1] .. ':queue'), redis.call('ZRANGE', KEYS[1] .. ':queue', 0, 9)
return {fields, left, fence, t[1] * 1000000 + t[2], record, waiters, first, number, shares}
