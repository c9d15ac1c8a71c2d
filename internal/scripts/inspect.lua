-- Returns the holders and the waiters of a name on this master. Writes nothing.
--
-- KEYS  1 lock   2 admission record
-- ARGV  none
-- Reply {{fields of the lock}, ms left (-2: free), fence, time us, record or '', count of waiters, {first ten waiters},
--        count of shares, {first hundred shares, each with its expiry in us}}
--
-- Safe to repeat: the script only reads. A hash of another program may be large: it is not read, and is an error. A
-- readers-writer lock is a sorted set and has no fields.
local call, fields, shares, number = redis.call, {}, {}, 0
local left = call('PTTL', KEYS[1])
-- include now.lua
if left ~= -2 then
  local size = redis.pcall('HLEN', KEYS[1])
  if size == 1 then fields = call('HSCAN', KEYS[1], 0)[2] end
  if type(size) == 'number' then
    if size ~= 1 or #fields[1] + #fields[2] > 1500 then return redis.error_reply('WRONGTYPE the hash is not a lock') end
  else
    shares = call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now), '+inf', 'WITHSCORES', 'LIMIT', 0, 100)
    if shares[1] then number = call('ZCARD', KEYS[1]) - call('ZRANK', KEYS[1], shares[1]) end
  end
end
local fence, record = call('GET', KEYS[1] .. ':fence') or '0', call('GETRANGE', KEYS[2], 0, 65535)
local waiters, first = call('ZCARD', KEYS[1] .. ':queue'), call('ZRANGE', KEYS[1] .. ':queue', 0, 9)
return {fields, left, fence, now, record, waiters, first, number, shares}
