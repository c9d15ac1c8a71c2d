-- Extends an existing lease, and writes its depth and its value: for an extension, a re-entry, or an inner release.
--
-- KEYS  1 lock   2 admission record
-- ARGV  1 stamp of the admission record that the connection expects; '' without the restart guard   2 lease id
--       3 life of the key in ms: the TTL plus 75 s; 0: no change   4 epoch
--       5 depth, an absolute number, with '~' if the lease may linger
--       6 until, the deadline in ballots, of 16 digits; with a life of 0: '0'
--       7 ' version value', the version with 16 digits; absent: no change
-- Reply 1                                              extended: at least the TTL is left, never less than before
--       {5, ms left (-2: free), fence, time us}        missing: ms left is that of another lease, or of a lease that
--                                                      was unlocked and has a minimum hold (depth 0)
--       {7, record, time us}                           refused: the TTL is too long, or the epoch is too old
--       {8, kind, time us}                             the name is of another kind
--
-- Safe to repeat: the script sets depth, deadline and life to absolute numbers, creates no lease, and shortens no
-- deadline. It works in quarantine, because a lease that exists was not forgotten. A value replaces only a value with a
-- smaller version.
local call, lock, life = redis.call, KEYS[1], tonumber(ARGV[3])
local lease, kept = unpack(call('HMGET', lock, ARGV[2], 'kept'))
local left = call('PTTL', lock)
kept = tonumber(kept or 75000)
local ballots, ends, value = string.match(lease or '', '^[1-9]%d*~?( %d+ %d+ )(%d+)(.*)$')
-- The lease has expired by both clocks: the caller's time is its new deadline less the TTL.
local over = left >= 0 and left < kept and (life == 0 or ARGV[6] - (life - 75000) * 1000 > tonumber(ends or 0))
if not ballots or over then
  -- include now.lua
  local fields = call('HMGET', lock, 'fence', 'queue', 'kept', 'kind')
  if fields[4] then return {8, fields[4], now} end
  local leases = call('HLEN', lock)
  for i = 1, 3 do
    if fields[i] then leases = leases - 1 end
  end
  local free = left >= 0 and left < kept or leases < 1
  return {5, free and -2 or math.max(-1, left - kept), fields[1] or '0', now}
end
-- include extend_common.lua
local newer = ARGV[7] and string.sub(ARGV[7], 2, 17) > string.sub(value, 2, 17)
if newer then value = ARGV[7] end
if ARGV[6] > ends then ends = ARGV[6] end
-- A full master refuses the new text. It extends the lease nevertheless, by its own clock alone. A call that only
-- writes a value (life 0) fails.
local text = ARGV[5] .. ballots .. ends .. value
if text ~= lease then
  local done = redis.pcall('HSET', lock, ARGV[2], text)
  if type(done) == 'table' and (newer and life == 0 or not string.find(done.err, 'OOM ', 1, true)) then return done end
end
if life > 0 and left - kept < life - 75000 then call('PEXPIRE', lock, life - 75000 + kept) end
return 1
