-- One step through the keys of a master. Returns the locks that have a lease. Writes nothing.
--
-- KEYS  none: the keys that SCAN returns are in one hash slot, because they begin with the prefix
-- ARGV  1 cursor   2 pattern of the keys of locks and of slots of semaphores   3 number of keys to examine, approximately
--       4 the client's estimate of the masters' time, in us
-- Reply {next cursor, {keys}}
--
-- Safe to repeat, because the script only reads. A lock that was released keeps its key, with its fence, for at least
-- 75 s. A lease has expired when at most 75 s are left, or as many ms as the field kept says, and its deadline has
-- passed by ARGV 4: this master's clock may have jumped forward. Keys of another type, and large hashes of other
-- programs, are not read.
local call, keys, at = redis.pcall, {}, tonumber(ARGV[4])
local step, time = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3]), redis.call('TIME')
for _, lock in ipairs(step[2]) do
  local fields = call('HLEN', lock)
  if type(fields) == 'number' and fields > 1 then
    local fence, kind, queue, kept = unpack(call('HMGET', lock, 'fence', 'kind', 'queue', 'kept'))
    local left = call('PTTL', lock)
    local held = fence and not kind and fields == 2 + (queue and 1 or 0) + (kept and 1 or 0)
    if held and left >= 0 and left <= tonumber(kept or 75000) then
      held = false
      for _, text in ipairs(call('HGETALL', lock)) do
        held = held or tonumber(string.match(text, '^%d+~? %d+ %d+ (%d+)') or 0) >= at
      end
    end
    if fence and kind == 'readers-writer' then
      local _, ends = unpack(call('ZRANGE', lock .. ':shares', -1, -1, 'WITHSCORES'))
      held = ends and tonumber(ends) >= math.min(at, time[1] * 1000000 + time[2])
    end
    if held then keys[#keys + 1] = lock end
  end
end
return {step[1], keys}
