-- Returns the holders and the waiters of a name on this master. Writes nothing.
--
-- KEYS  1 lock   2 admission record
-- ARGV  none
-- Reply {{id and text of the lease}, ms left (-2: free), fence, time us, record or '', count of waiters, {first ten
--        waiters}, count of shares, {first hundred shares, each with its deadline in us}, kind}
--
-- Safe to repeat: the script only reads. A hash of another program may be large: it is not read, and is an error. A
-- lease that has expired by this master's clock is not shown. kind is '' for a plain lock.
local call, lock, number, marks = redis.call, KEYS[1], 0, {}
-- include common.lua
local lease, list, ms = {}, {}, -2
if kind == 'readers-writer' then
  local shares = lock .. ':shares'
  list = call('ZRANGEBYSCORE', shares, string.format('%.0f', now), '+inf', 'WITHSCORES', 'LIMIT', 0, 100)
  if list[1] then
    number = call('ZCARD', shares) - call('ZRANK', shares, list[1])
    ms = math.ceil((tonumber(call('ZRANGE', shares, -1, -1, 'WITHSCORES')[2]) - now + 1) / 1000)
  end
elseif not kind then
  -- include holder.lua
  if holder and (left == -1 or left >= kept) then lease, ms = {holder, text}, math.max(-1, left - kept) end
end
local record = call('GETRANGE', KEYS[2], 0, 65535)
return {lease, ms, fence, now, record, call('ZCARD', queue), call('ZRANGE', queue, 0, 9), number, list, kind or ''}
