-- Returns the holders and the waiters of a name on this master. Writes nothing.
--
-- KEYS  1 lock   2 admission record
-- ARGV  1 the client's estimate of the masters' time, of 16 digits; absent: this master's time
-- Reply {{id and text of the lease}, ms left (-2: free), fence, time us, record or '', count of waiters, {first ten
--        waiters}, count of shares, {first hundred shares, each with its deadline in us}, kind}
--
-- Safe to repeat: the script only reads. A hash of another program may be large: it is not read, and is an error. A
-- lease is shown unless it has expired by both clocks, as for an acquire of that time: this master's clock may have
-- jumped forward. kind is '' for a plain lock.
local call, lock, number, marks = redis.call, KEYS[1], 0, {}
-- include common.lua
local lease, list, ms, at = {}, {}, -2, tonumber(ARGV[1] or now)
if kind == 'readers-writer' then
  local shares = lock .. ':shares'
  local least = string.format('%.0f', math.min(now, at))
  list = call('ZRANGEBYSCORE', shares, least, '+inf', 'WITHSCORES', 'LIMIT', 0, 100)
  if list[1] then
    number = call('ZCARD', shares) - call('ZRANK', shares, list[1])
    ms = math.max(1, math.ceil((tonumber(call('ZRANGE', shares, -1, -1, 'WITHSCORES')[2]) - now + 1) / 1000))
  end
elseif not kind then
  -- include holder.lua
  if holder and left >= kept then lease, ms = {holder, text}, left - kept
  elseif holder and (ARGV[1] or left == -1) and at <= ends then
    lease, ms = {holder, text}, math.floor((ends - at) / 1000) + 1
  end
end
local record = call('GETRANGE', KEYS[2], 0, 65535)
return {lease, ms, fence, now, record, call('ZCARD', queue), call('ZRANGE', queue, 0, 9), number, list, kind or ''}
