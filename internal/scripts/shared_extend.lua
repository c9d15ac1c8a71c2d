-- Extends the existing share of a lease.
--
-- KEYS  1 lock   2 admission record
-- ARGV  1 stamp of the admission record that the connection expects; '' without the restart guard   2 lease id
--       3 life of the keys in ms: the TTL plus 75 s; 0: no change   4 epoch   5 until, as in shared_acquire.lua
-- Reply 1                                              extended: at least the TTL is left, never less than before
--       {5, ms left (-2: free), fence, time us}        missing: ms left is that of the share that expires last, and
--                                                      fence the larger of both
--       {7, record, time us}                           refused: the TTL is too long, or the epoch is too old
--       {8, kind, time us}                             the name is of another kind
--
-- Safe to repeat: the script sets an absolute deadline, creates no share, and shortens none. It works in quarantine,
-- because a share that exists was not forgotten. A full master refuses it: unlike the TTL of a key, the deadline of a
-- share is data.
local call, lock, life, marks = redis.call, KEYS[1], tonumber(ARGV[3]), {'kind', 'readers-writer'}
-- include common.lua
-- include shared_common.lua
if other then return other end
-- The share has expired by both clocks: the caller's time is its new deadline less the TTL.
local mine = ends(ARGV[2], life > 0 and math.min(now, ARGV[5] - (life - 75000) * 1000) or now)
if mine == 0 then
  local held, wait = holder(now)
  local reads = call('HGET', lock, 'reads') or '0'
  if (tonumber(reads) or 0) > top then fence = reads end
  return {5, held and math.ceil(wait / 1000) or -2, fence, now}
end
-- include extend_common.lua
if life > 0 then
  share(ARGV[2], mine, life, ARGV[5])
  prolong(life)
end
return 1
